import { randomUUID } from 'node:crypto';
import { homedir } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { type Failure, failureOf, hasCode, ThroughlineError } from '../../../core/errors.ts';
import { given } from '../../../core/input/arguments.ts';
import type { PublicConversation } from '../../../core/public/conversation.ts';
import type { PublicEvent } from '../../../core/public/event.ts';
import type { Engine, SubmitOptions } from '../../../ports/engine.ts';
import { EXIT } from '../exit-codes.ts';
import { turns } from '../lines.ts';
import { oneLine } from '../terminal-text.ts';
import { type Editor, edit, newEditor, remember, withText } from './input/editor.ts';
import { addToHistory, historyFile, readHistory } from './input/history.ts';
import type { Key } from './input/keys.ts';
import { Leaving } from './leaving.ts';
import { Questions } from './questions.ts';
import { Screen, type ScreenOptions } from './screen.ts';
import { completions, parseSlash, type SlashContext } from './slash.ts';
import { type OpenDesk, promptText, Talk } from './talk.ts';
import { type Span, span } from './text/cells.ts';
import { type Activity, Transcript } from './transcript.ts';

interface ChatRequest extends ScreenOptions {
  readonly open: OpenDesk;
  /** For the first prompt. Later prompts go to the agent of the previous turn. */
  readonly agent: string | undefined;
  /** For every prompt. */
  readonly options: SubmitOptions;
  /** Shows what the program waits for before the chat starts and after it ends. Null: nothing. */
  waitFor(what: string | null): void;
  /** A text of ours with commands in double quotes, as they can be run here. */
  runnable(text: string): string;
  /** Chooses the conversation. */
  choose(talk: Talk): Promise<Chosen>;
  /** How to create a new conversation. `key` left out: a free key is chosen. */
  spec(talk: Talk, key: string | undefined): Promise<Parameters<Talk['begin']>[0]>;
}

type Chosen = { readonly existing: PublicConversation } | { readonly spec: Parameters<Talk['begin']>[0] };

/** How many earlier turns are shown on opening a conversation. */
const PAST_TURNS = 3;
/** On leaving: how long an interrupted turn may take to end. */
const LEAVE_MS = 3_000;
/** On leaving: how long the last prompt may take to be accepted. */
const ACCEPT_MS = 1_000;

/** A conversation at a terminal, until the person leaves. Resolves with the exit code; the terminal is then as it was. */
export async function chat(request: ChatRequest): Promise<number> {
  const room = new ChatRoom(request);
  return room.run();
}

/** One chat: keys and events in, lines out. The `screen` draws, `questions` answers agents, `leaving` ends the chat. */
class ChatRoom {
  readonly #request: ChatRequest;
  readonly #screen: Screen;
  readonly #questions: Questions;
  readonly #leaving: Leaving;
  transcript: Transcript;
  talk!: Talk;
  editor: Editor = newEditor([]);
  #historyFile: string | null = null;
  #agent: string | undefined;
  #lastTurn: string | null = null;
  trouble: string | null = null;
  /** Slash commands that have not ended, the oldest first. */
  readonly #commands = new Set<Activity>();

  constructor(request: ChatRequest) {
    this.#request = request;
    this.transcript = new Transcript(request.runnable);
    this.#agent = request.agent;
    this.#questions = new Questions(this);
    this.#leaving = new Leaving(this);
    const gone = () => this.#leaving.leave(EXIT.interrupted);
    this.#screen = new Screen(request, this, { key: (key) => this.#onKey(key), gone });
  }

  get engine(): Engine {
    return this.talk.engine;
  }

  /** The option that Enter chooses; null: none. */
  get selected(): number | null {
    return this.#questions.choice;
  }

  async run(): Promise<number> {
    this.#request.waitFor('opening the conversation …');
    this.talk = await Talk.open(this.#request.open, {
      event: (event) => this.#onEvent(event),
      note: (text) => this.say([span(text, 'dim')]),
      trouble: (what) => {
        this.trouble = what;
        this.#screen.soon();
      },
      failed: (error) => this.failed(error),
    });
    const release = this.#leaving.onSignals(() => this.#screen.isEntered);
    let code: number = EXIT.internal;
    try {
      const chosen = await Promise.race([this.#request.choose(this.talk), this.#leaving.code]);
      this.#request.waitFor(null);
      if (typeof chosen === 'number') return chosen;
      this.#screen.enter();
      this.#loadHistory();
      if ('existing' in chosen) await this.#enter(chosen.existing);
      else this.#begin(chosen.spec);
      code = await this.#leaving.code;
      return code;
    } finally {
      this.#screen.stop();
      await this.#goodbye(code);
      release();
    }
  }

  // ── conversations ──

  #begin(spec: Parameters<Talk['begin']>[0]): void {
    this.talk.begin(spec);
    this.#reset(spec.cwd ?? null);
    const where = spec.cwd === undefined ? 'in a directory of its own' : `in ${tilde(spec.cwd)}`;
    this.say([span(spec.key ?? 'chat', 'bold'), span(` · a new conversation, ${where}`, 'dim')]);
    this.say([span('/help lists commands. Ctrl-C cancels; press it twice to leave.', 'dim')]);
  }

  async #enter(conversation: PublicConversation): Promise<void> {
    if (conversation.driver === 'tracker') {
      throw new ThroughlineError('refused', 'Another program runs the turns of this conversation.', {
        hint: 'Read it with "throughline show". To continue it here, fork it first.',
      });
    }
    const { id, key, head, historyCount, cwd, title } = conversation;
    const past = await this.talk.engine.turns(id, { after: Math.max(0, head - PAST_TURNS) });
    this.#reset(cwd);
    const name = oneLine(key ?? id);
    const about = title === '' || title === key ? '' : ` · ${oneLine(title)}`;
    const where = cwd === null ? '' : ` · ${tilde(cwd)}`;
    this.say([span(name, 'bold'), span(`${about} · ${turns(historyCount)}${where}`, 'dim')]);
    if (historyCount > PAST_TURNS) this.say([span(`The last ${PAST_TURNS} of them:`, 'dim')]);
    for (const turn of past.filter(({ n }) => n <= head)) {
      this.#lastTurn = turn.id;
      this.transcript.past(promptText(turn.prompt), turn.reply, turn.failure);
    }
    await this.talk.enter(conversation);
    this.#screen.soon();
    // Starts the agent before the next prompt, which reports the fault if this fails.
    if (historyCount > 0 && conversation.open === 0) {
      this.talk.engine.warm(id, given({ agent: this.#agent })).catch(() => {});
    }
  }

  #reset(cwd: string | null): void {
    // The conversation before stays on the screen, above the new one.
    this.#screen.flush();
    this.transcript = new Transcript(this.#request.runnable);
    this.transcript.cwd = cwd;
    this.#lastTurn = null;
  }

  // ── events ──

  #onEvent(event: PublicEvent): void {
    this.transcript.see(event);
    if (event.kind === 'turn.ended') this.#lastTurn = event.turnId;
    this.#screen.soon();
  }

  #send(text: string): void {
    const requestId = randomUUID();
    const agent = this.#agent;
    this.#agent = undefined;
    const transcript = this.transcript;
    transcript.sends(requestId, text);
    this.#addToHistory(text);
    this.talk.submit(text, { ...this.#request.options, ...given({ agent }), requestId }).catch((error) => {
      transcript.notSent(requestId);
      this.#agent = agent;
      this.failed(error);
      if (this.editor.text === '') this.editor = withText(this.editor, text);
    });
    this.#screen.soon();
  }

  async #command(text: string): Promise<void> {
    const parsed = parseSlash(text);
    if (parsed.kind === 'prompt') return this.#send(parsed.text);
    this.#addToHistory(text);
    this.say([span(`› ${oneLine(text)}`, 'dim')]);
    if (parsed.kind === 'unknown') return this.say([span(parsed.message, 'yellow')]);
    const busy = { what: `running /${parsed.name}`, since: Date.now() };
    this.#commands.add(busy);
    try {
      await parsed.command.run(this.#context(), parsed.words);
    } catch (error) {
      this.failed(error);
    } finally {
      this.#commands.delete(busy);
      this.#screen.soon();
    }
  }

  /** What the conversation is doing, or else the command that runs longest. */
  get activity(): Activity | null {
    return this.transcript.activity ?? [...this.#commands][0] ?? null;
  }

  #context(): SlashContext {
    const { engine, conversation } = this.talk;
    return {
      engine,
      conversation,
      agent: this.#agent ?? null,
      lastTurn: this.#lastTurn,
      say: (...lines) => {
        for (const line of lines) this.say(line);
      },
      describe: (rows) => {
        this.transcript.list(rows);
        this.#screen.soon();
      },
      useAgent: (name) => {
        this.#agent = name;
      },
      cancel: () => this.cancel(),
      retry: async (turn) => {
        const requestId = randomUUID();
        this.transcript.sends(requestId, promptText((await engine.turn(turn)).prompt));
        await engine.retry(turn, { requestId }).catch((error) => {
          this.transcript.notSent(requestId);
          throw error;
        });
      },
      answer: (word) => this.#questions.answerBy(word),
      enter: (found) => this.#enter(found),
      begin: async (key) => this.#begin(await this.#request.spec(this.talk, key)),
      open: async (key) => this.#enter(await engine.conversation(key)),
      leave: () => this.#leaving.ask(),
    };
  }

  /** Cancels queued turns first: otherwise one would begin when the running turn ends. False: no turn is open. */
  cancel(): boolean {
    const { running, queued } = this.transcript;
    const open = [...queued.map(({ turnId }) => turnId).toReversed(), ...(running === null ? [] : [running.id])];
    const stop = async () => {
      // `conflict`: the turn has just ended.
      for (const id of open)
        await this.talk.engine.cancel(id).catch((error) => hasCode(error, 'conflict') || this.failed(error));
    };
    void stop();
    return open.length > 0;
  }

  // ── keys ──

  #onKey(key: Key): void {
    if (key.name !== 'interrupt' && key.name !== 'eof') this.#leaving.stay();
    switch (key.name) {
      case 'interrupt':
        this.#leaving.interrupt();
        break;
      case 'eof':
        if (this.editor.text === '') this.#leaving.ask();
        else this.editor = edit(this.editor, key).editor;
        break;
      case 'suspend':
        this.#screen.suspend();
        return;
      case 'redraw':
        this.#screen.redraw();
        break;
      case 'tab':
        this.#complete();
        break;
      default:
        // While the input is empty, keys may answer a question.
        if (this.editor.text !== '' || !this.#questions.onKey(key)) this.#onEdit(key);
    }
    this.#screen.now();
  }

  #onEdit(key: Key): void {
    const { editor, submitted } = edit(this.editor, key);
    this.editor = editor;
    this.#screen.hint(null);
    if (submitted !== undefined) void this.#command(submitted.trimEnd());
  }

  #complete(): void {
    const found = completions(this.editor.text);
    if (found.length === 1) this.editor = withText(this.editor, `/${found[0]} `);
    else if (found.length > 1) this.#screen.hint(found.map((name) => `/${name}`).join('  '));
  }

  clear(): void {
    this.editor = withText(this.editor, '');
  }

  // ── notes ──

  hint(text: string): void {
    this.#screen.hint(text);
    this.#screen.now();
  }

  say(line: readonly Span[]): void {
    this.transcript.note(...line);
    this.#screen.soon();
  }

  failed(error: unknown): void {
    const failure: Failure =
      error instanceof ThroughlineError
        ? failureOf(error)
        : { code: 'internal', message: `Internal error: ${error instanceof Error ? error.message : error}` };
    const hint = failure.hint === undefined ? '' : ` ${oneLine(this.#request.runnable(failure.hint))}`;
    this.say([span(oneLine(failure.message), 'red'), span(hint)]);
  }

  // ── the history of prompts, and leaving ──

  #loadHistory(): void {
    const file = historyFile(this.talk.home, this.talk.engine.owner);
    try {
      this.editor = newEditor(readHistory(file));
      this.#historyFile = file;
    } catch (error) {
      this.say([span(`Earlier prompts cannot be read: ${oneLine(String(error))}`, 'dim')]);
    }
  }

  #addToHistory(text: string): void {
    this.editor = remember(this.editor, text);
    if (this.#historyFile === null) return;
    try {
      addToHistory(this.#historyFile, text);
    } catch (error) {
      this.#historyFile = null;
      this.say([span(`Prompts are not stored for later chats: ${oneLine(String(error))}`, 'dim')]);
    }
  }

  /** Restores the terminal, and prints how to come back. */
  async #goodbye(code: number): Promise<void> {
    // The last prompt may still be on its way.
    if (this.trouble === null) await Promise.race([this.talk.submitted(), delay(ACCEPT_MS, null, { ref: false })]);
    this.#screen.leave();
    if (code !== EXIT.internal)
      this.#request.output.write(`\n${this.#leaving.farewell().map(this.#request.runnable).join('\n')}\n`);
    this.#request.waitFor('closing …');
    const { graceMs } = this.#leaving;
    const closed = this.talk.close(graceMs);
    const late = new Promise<void>((resolve) => setTimeout(resolve, LEAVE_MS).unref());
    await (graceMs === 0 ? Promise.race([closed, late]) : closed);
  }
}

function tilde(path: string): string {
  const home = homedir();
  const shown = oneLine(path);
  return shown === home ? '~' : shown.startsWith(`${home}/`) ? `~${shown.slice(home.length)}` : shown;
}
