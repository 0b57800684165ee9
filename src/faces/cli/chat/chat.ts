import { randomUUID } from 'node:crypto';
import { homedir } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { type Failure, failureOf, ThroughlineError } from '../../../core/errors.ts';
import type { PublicConversation } from '../../../core/public/conversation.ts';
import type { PublicEvent } from '../../../core/public/event.ts';
import type { SubmitOptions } from '../../../ports/engine.ts';
import { DONE, EXIT } from '../exit-codes.ts';
import { turns } from '../lines.ts';
import { oneLine } from '../terminal-text.ts';
import { type Editor, edit, newEditor, remember, withText } from './input/editor.ts';
import { addToHistory, historyFile, readHistory } from './input/history.ts';
import type { Key } from './input/keys.ts';
import { Painter } from './painter.ts';
import { completions, parseSlash, type SlashContext } from './slash.ts';
import { codeOf, type OpenDesk, type OpenElsewhere, promptText, Talk } from './talk.ts';
import { Terminal } from './terminal.ts';
import { type Span, span } from './text/cells.ts';
import { type Activity, Transcript } from './transcript.ts';
import { firstChoice, optionFor, view } from './view.ts';

export interface ChatRequest {
  readonly open: OpenDesk;
  readonly input: typeof process.stdin;
  readonly output: typeof process.stdout;
  readonly color: boolean;
  /** For the first prompt; then the agent of the turn before answers. */
  readonly agent: string | undefined;
  /** For every prompt. */
  readonly options: SubmitOptions;
  /** Shows what is waited for before the chat is there, and after it. Null: nothing. */
  waitFor(what: string | null): void;
  /** Chooses the conversation. */
  choose(talk: Talk): Promise<Chosen>;
  /** A new one. `key` left out: one is chosen. */
  spec(talk: Talk, key: string | undefined): Promise<Parameters<Talk['begin']>[0]>;
}

export type Chosen = { readonly existing: PublicConversation } | { readonly spec: Parameters<Talk['begin']>[0] };

/** How long the second Ctrl-C counts as such. */
const TWICE_MS = 2_000;
/** How often what moves is drawn, and how long pieces of text are gathered before that. */
const TICK_MS = 120;
const GATHER_MS = 25;
/** How many earlier turns are shown on opening a conversation. */
const PAST_TURNS = 3;
/** How long a turn that is interrupted by leaving may take to end. */
const LEAVE_MS = 3_000;
/** How long a prompt that was given just before may take to be accepted. */
const ACCEPT_MS = 1_000;

/** A conversation at a terminal, until the person leaves. Resolves with the exit code; the terminal is then as it was. */
export async function chat(request: ChatRequest): Promise<number> {
  const room = new ChatRoom(request);
  return room.run();
}

class ChatRoom {
  readonly #request: ChatRequest;
  readonly #terminal: Terminal;
  readonly #painter: Painter;
  readonly #left = Promise.withResolvers<number>();
  #transcript = new Transcript();
  #talk!: Talk;
  #editor: Editor = newEditor([]);
  #historyFile: string | null = null;
  #agent: string | undefined;
  #lastTurn: string | null = null;
  #trouble: string | null = null;
  #hint: { readonly text: string; readonly until: number } | null = null;
  #selected: { readonly id: string; readonly index: number | null } | null = null;
  #interruptedAt = Number.NEGATIVE_INFINITY;
  #warned = false;
  /** Open turns of conversations that were left here, when the person last asked to leave. */
  #elsewhere: readonly OpenElsewhere[] = [];
  /** Commands of the person that have not ended. */
  readonly #commands = new Set<Activity>();
  /** Asking before leaving is one after another: the second time leaves. */
  #asking: Promise<void> = Promise.resolve();
  #paint: NodeJS.Timeout | undefined;
  #tick: NodeJS.Timeout | undefined;

  constructor(request: ChatRequest) {
    this.#request = request;
    this.#agent = request.agent;
    this.#terminal = new Terminal(request.input, request.output, {
      key: (key) => this.#onKey(key),
      resized: () => this.#resized(),
      resumed: () => this.#resized(),
      gone: () => this.#leave(EXIT.interrupted),
    });
    const { columns, rows } = this.#terminal;
    this.#painter = new Painter({ color: request.color, columns, rows });
  }

  async run(): Promise<number> {
    this.#request.waitFor('opening the conversation …');
    this.#talk = await Talk.open(this.#request.open, {
      event: (event) => this.#onEvent(event),
      note: (text) => this.#say([span(text, 'dim')]),
      trouble: (what) => {
        this.#trouble = what;
        this.#soon();
      },
      failed: (error) => this.#failed(error),
    });
    const release = this.#onSignals();
    let code: number = EXIT.internal;
    try {
      const chosen = await Promise.race([this.#request.choose(this.#talk), this.#left.promise]);
      this.#request.waitFor(null);
      if (typeof chosen === 'number') return chosen;
      this.#terminal.enter();
      this.#loadHistory();
      if ('existing' in chosen) await this.#enter(chosen.existing);
      else this.#begin(chosen.spec);
      code = await this.#left.promise;
      return code;
    } finally {
      clearTimeout(this.#paint);
      clearInterval(this.#tick);
      await this.#goodbye(code);
      release();
    }
  }

  // ── conversations ──

  #begin(spec: Parameters<Talk['begin']>[0]): void {
    this.#talk.begin(spec);
    this.#fresh(spec.cwd ?? null);
    const where = spec.cwd === undefined ? 'in a directory of its own' : `in ${tilde(spec.cwd)}`;
    this.#say([span(spec.key ?? 'chat', 'bold'), span(` · a new conversation, ${where}`, 'dim')]);
    this.#say([span('/help lists commands. Ctrl-C cancels, twice leaves.', 'dim')]);
  }

  async #enter(conversation: PublicConversation): Promise<void> {
    if (conversation.driver === 'tracker') {
      throw new ThroughlineError('refused', 'A program of its own runs the turns of this conversation.', {
        hint: 'Read it with "throughline show". To continue it here, fork it first.',
      });
    }
    const { id, key, head, historyCount, cwd, title } = conversation;
    const past = await this.#talk.engine.turns(id, { after: Math.max(0, head - PAST_TURNS) });
    this.#fresh(cwd);
    const name = oneLine(key ?? id);
    const about = title === '' || title === key ? '' : ` · ${oneLine(title)}`;
    const where = cwd === null ? '' : ` · ${tilde(cwd)}`;
    this.#say([span(name, 'bold'), span(`${about} · ${turns(historyCount)}${where}`, 'dim')]);
    if (historyCount > PAST_TURNS) this.#say([span(`The last ${PAST_TURNS} of them:`, 'dim')]);
    for (const turn of past.filter(({ n }) => n <= head)) {
      this.#lastTurn = turn.id;
      this.#transcript.past(promptText(turn.prompt), turn.reply, turn.failure);
    }
    await this.#talk.enter(conversation);
    this.#soon();
    // Ahead of the prompt: the person does not wait for it later. What goes wrong, the prompt will say.
    if (historyCount > 0 && conversation.open === 0) {
      this.#talk.engine.warm(id, this.#agent === undefined ? {} : { agent: this.#agent }).catch(() => {});
    }
  }

  #fresh(cwd: string | null): void {
    // What was drawn of the conversation before stays above.
    this.#flush();
    this.#transcript = new Transcript();
    this.#transcript.cwd = cwd;
    this.#lastTurn = null;
  }

  // ── events ──

  #onEvent(event: PublicEvent): void {
    this.#transcript.see(event);
    if (event.kind === 'turn.ended') this.#lastTurn = event.turnId;
    this.#soon();
  }

  #send(text: string): void {
    const requestId = randomUUID();
    const agent = this.#agent;
    this.#agent = undefined;
    const transcript = this.#transcript;
    transcript.sends(requestId, text);
    this.#keep(text);
    this.#talk
      .submit(text, { ...this.#request.options, ...(agent !== undefined && { agent }), requestId })
      .catch((error) => {
        transcript.notSent(requestId);
        this.#agent = agent;
        this.#failed(error);
        if (this.#editor.text === '') this.#editor = withText(this.#editor, text);
      });
    this.#soon();
  }

  async #command(text: string): Promise<void> {
    const parsed = parseSlash(text);
    if (parsed.kind === 'prompt') return this.#send(parsed.text);
    this.#keep(text);
    this.#say([span(`› ${oneLine(text)}`, 'dim')]);
    if (parsed.kind === 'unknown') return this.#say([span(parsed.message, 'yellow')]);
    const busy = { what: `running /${parsed.name}`, since: Date.now() };
    this.#commands.add(busy);
    try {
      await parsed.command.run(this.#context(), parsed.words);
    } catch (error) {
      this.#failed(error);
    } finally {
      this.#commands.delete(busy);
      this.#soon();
    }
  }

  /** What the conversation is doing, or else the command that runs longest. */
  get #activity(): Activity | null {
    return this.#transcript.activity ?? [...this.#commands][0] ?? null;
  }

  #context(): SlashContext {
    const { engine, conversation } = this.#talk;
    return {
      engine,
      conversation,
      agent: this.#agent ?? null,
      lastTurn: this.#lastTurn,
      say: (...lines) => {
        for (const line of lines) this.#say(line);
      },
      describe: (rows) => {
        this.#transcript.list(rows);
        this.#soon();
      },
      useAgent: (name) => {
        this.#agent = name;
      },
      cancel: () => this.#cancel(),
      retry: async (turn) => {
        const requestId = randomUUID();
        this.#transcript.sends(requestId, promptText((await engine.turn(turn)).prompt));
        await engine.retry(turn, { requestId }).catch((error) => {
          this.#transcript.notSent(requestId);
          throw error;
        });
      },
      answer: (word) => this.#answerBy(word),
      enter: (found) => this.#enter(found),
      begin: async (key) => this.#begin(await this.#request.spec(this.#talk, key)),
      open: async (key) => this.#enter(await engine.conversation(key)),
      leave: () => this.#toLeave(),
    };
  }

  /** What is queued first: otherwise it would begin as soon as the turn before it has ended. */
  #cancel(): boolean {
    const { running, queued } = this.#transcript;
    const open = [...queued.map(({ turnId }) => turnId).toReversed(), ...(running === null ? [] : [running.id])];
    const stop = async () => {
      // One that has just ended takes no cancel, and needs none.
      for (const id of open)
        await this.#talk.engine.cancel(id).catch((error) => codeOf(error) === 'conflict' || this.#failed(error));
    };
    void stop();
    return open.length > 0;
  }

  // ── questions ──

  get #choice(): number | null {
    const [question] = this.#transcript.questions;
    if (question === undefined) return null;
    return this.#selected?.id === question.permissionId ? this.#selected.index : firstChoice(question);
  }

  /** Keys that answer a question, as long as nothing is written. True: it was one. */
  #onQuestionKey(key: Key): boolean {
    const [question] = this.#transcript.questions;
    if (question === undefined || this.#editor.text !== '') return false;
    const { permissionId: id, options } = question;
    if (key.name === 'text' && /^[1-9]$/.test(key.text) && Number(key.text) <= options.length) {
      this.#selected = { id, index: Number(key.text) - 1 };
      return true;
    }
    if (key.name === 'left' || key.name === 'right') {
      const step = key.name === 'left' ? options.length - 1 : 1;
      this.#selected = { id, index: ((this.#choice ?? -1) + step + options.length) % options.length };
      return true;
    }
    if (key.name !== 'enter') return false;
    const chosen = this.#choice === null ? undefined : options[this.#choice];
    if (chosen === undefined) this.#hintFor('Choose an answer by its number first.');
    else this.#answer(id, chosen.optionId);
    return true;
  }

  #answerBy(word: 'allow' | 'deny'): void {
    const [question] = this.#transcript.questions;
    const optionId = question === undefined ? null : optionFor(word, question);
    if (question === undefined) this.#say([span('Nothing is asked.', 'dim')]);
    else if (optionId === null)
      this.#say([span('The question has no such answer. Choose one by its number.', 'yellow')]);
    else this.#answer(question.permissionId, optionId);
  }

  #answer(permissionId: string, optionId: string): void {
    this.#transcript.answersHere(permissionId);
    this.#talk.engine.answer(permissionId, optionId).catch((error) => {
      this.#transcript.answeredElsewhere(permissionId);
      // Somebody else was first; the event says who.
      if (codeOf(error) !== 'conflict') this.#failed(error);
    });
  }

  // ── keys ──

  #onKey(key: Key): void {
    if (key.name !== 'interrupt' && key.name !== 'eof') {
      this.#warned = false;
      this.#interruptedAt = Number.NEGATIVE_INFINITY;
    }
    switch (key.name) {
      case 'interrupt':
        this.#interrupt();
        break;
      case 'eof':
        if (this.#editor.text === '') this.#toLeave();
        else this.#editor = edit(this.#editor, key).editor;
        break;
      case 'suspend':
        this.#terminal.write(this.#painter.clear());
        this.#terminal.suspend();
        return;
      case 'redraw':
        this.#resized();
        break;
      case 'tab':
        this.#complete();
        break;
      default:
        if (!this.#onQuestionKey(key)) this.#onEdit(key);
    }
    this.#now();
  }

  #onEdit(key: Key): void {
    const { editor, submitted } = edit(this.#editor, key);
    this.#editor = editor;
    this.#hint = null;
    if (submitted !== undefined) void this.#command(submitted.trimEnd());
  }

  #complete(): void {
    const found = completions(this.#editor.text);
    if (found.length === 1) this.#editor = withText(this.#editor, `/${found[0]} `);
    else if (found.length > 1) this.#hintFor(found.map((name) => `/${name}`).join('  '));
  }

  /** The first Ctrl-C stops what runs, the second leaves. */
  #interrupt(): void {
    const now = performance.now();
    if (now - this.#interruptedAt < TWICE_MS) {
      this.#leave(DONE, 0);
      return;
    }
    this.#interruptedAt = now;
    const stops = this.#cancel();
    if (!stops) this.#editor = withText(this.#editor, '');
    this.#hintFor(`${stops ? 'Cancelling. ' : ''}Press Ctrl-C again to leave.`);
  }

  #toLeave(): void {
    this.#asking = this.#asking.then(() => this.#askToLeave()).catch((error) => this.#failed(error));
  }

  /** A turn that runs in this process would be interrupted, so the person is asked once. */
  async #askToLeave(): Promise<void> {
    const { running } = this.#transcript;
    this.#elsewhere = this.#trouble === null ? await this.#talk.openElsewhere() : [];
    const isIdle = running === null && this.#elsewhere.length === 0;
    if (isIdle || this.#talk.served || this.#warned) return this.#leave(DONE, isIdle ? undefined : 0);
    this.#warned = true;
    const open = openTurns(running, this.#elsewhere);
    const runs = open.length === 1 ? 'runs' : 'run';
    const cancels = running === null ? '' : `, Ctrl-C cancels turn ${running.n}`;
    this.#hintFor(`${open.join(', ')} ${runs} in this process and would be interrupted. Once more leaves${cancels}.`);
    this.#now();
  }

  // ── the screen ──

  #say(line: readonly Span[]): void {
    this.#transcript.note(...line);
    this.#soon();
  }

  #failed(error: unknown): void {
    const failure: Failure =
      error instanceof ThroughlineError
        ? failureOf(error)
        : { code: 'internal', message: `Internal error: ${error instanceof Error ? error.message : error}` };
    const hint = failure.hint === undefined ? '' : ` ${oneLine(failure.hint)}`;
    this.#say([span(oneLine(failure.message), 'red'), span(hint)]);
  }

  #hintFor(text: string): void {
    this.#hint = { text, until: performance.now() + TWICE_MS };
    setTimeout(() => this.#soon(), TWICE_MS + 10).unref();
  }

  #soon(): void {
    this.#paint ??= setTimeout(() => this.#now(), GATHER_MS);
  }

  #now(): void {
    clearTimeout(this.#paint);
    this.#paint = undefined;
    this.#flush();
    const moves = this.#activity !== null;
    if (moves && this.#tick === undefined) this.#tick = setInterval(() => this.#soon(), TICK_MS).unref();
    if (!moves) {
      clearInterval(this.#tick);
      this.#tick = undefined;
    }
  }

  #flush(): void {
    const { columns, rows, erasable } = this.#painter;
    const width = Math.max(10, columns - 1);
    const flushed = this.#transcript.flush(width, erasable);
    this.#terminal.write(this.#painter.paint(flushed, view(this.#state(width), columns, rows)));
  }

  #state(width: number): Parameters<typeof view>[0] {
    const transcript = this.#transcript;
    const now = Date.now();
    if (this.#hint !== null && this.#hint.until <= performance.now()) this.#hint = null;
    return {
      live: transcript.live(width, now),
      activity: this.#activity,
      agent: transcript.running?.agent ?? null,
      queued: transcript.queued.map(({ text }) => text),
      unsent: transcript.unsent,
      question: transcript.questions[0] ?? null,
      moreQuestions: Math.max(0, transcript.questions.length - 1),
      selected: this.#choice,
      editor: this.#editor,
      hint: this.#hint?.text ?? null,
      trouble: this.#trouble,
      now,
    };
  }

  #resized(): void {
    this.#terminal.write(this.#painter.resize(this.#terminal.columns, this.#terminal.rows));
    this.#now();
  }

  // ── coming and going ──

  #loadHistory(): void {
    const file = historyFile(this.#talk.home, this.#talk.engine.owner);
    try {
      this.#editor = newEditor(readHistory(file));
      this.#historyFile = file;
    } catch (error) {
      this.#say([span(`Earlier prompts cannot be read: ${oneLine(String(error))}`, 'dim')]);
    }
  }

  #keep(text: string): void {
    this.#editor = remember(this.#editor, text);
    if (this.#historyFile === null) return;
    try {
      addToHistory(this.#historyFile, text);
    } catch (error) {
      this.#historyFile = null;
      this.#say([span(`Prompts are not kept for later chats: ${oneLine(String(error))}`, 'dim')]);
    }
  }

  #onSignals(): () => void {
    const interrupt = () => {
      // Nothing is shown yet: this is not the key, but the signal that every program gets.
      if (!this.#terminal.isEntered) return this.#leave(EXIT.cancelled, 0);
      this.#interrupt();
      this.#now();
    };
    const terminate = () => this.#leave(EXIT.interrupted);
    process.on('SIGINT', interrupt).on('SIGTERM', terminate).on('SIGHUP', terminate);
    return () => process.off('SIGINT', interrupt).off('SIGTERM', terminate).off('SIGHUP', terminate);
  }

  #graceMs: number | undefined;

  /** `graceMs`: how long a turn that runs in this process may take to end; left out: as usual. */
  #leave(code: number, graceMs?: number): void {
    this.#graceMs = graceMs;
    this.#left.resolve(code);
  }

  /** Leaves the terminal as it was, with a line that says how to come back. */
  async #goodbye(code: number): Promise<void> {
    const { running } = this.#transcript;
    // What was given just before leaving is on its way.
    if (this.#trouble === null) await Promise.race([this.#talk.submitted(), delay(ACCEPT_MS, null, { ref: false })]);
    this.#flush();
    this.#terminal.write(this.#painter.clear());
    this.#terminal.leave();
    if (code !== EXIT.internal) this.#request.output.write(`\n${this.#farewell(running).join('\n')}\n`);
    this.#request.waitFor('closing …');
    const closed = this.#talk.close(this.#graceMs);
    const late = new Promise<void>((resolve) => setTimeout(resolve, LEAVE_MS).unref());
    await (this.#graceMs === 0 ? Promise.race([closed, late]) : closed);
  }

  #farewell(running: Transcript['running']): string[] {
    const { name, conversation, served, unsent } = this.#talk;
    const lost = unsent.map((text) => `Not sent: ${oneLine(text)}`);
    if (conversation === null || name === null)
      return lost.length > 0 ? lost : ['Nothing was said, and nothing is stored.'];
    const goesOn = served ? openTurns(running, this.#elsewhere).map((turn) => `${turn} continues at the server.`) : [];
    return [...lost, ...goesOn, `To come back: throughline chat ${shellWord(oneLine(name))}`];
  }
}

function openTurns(running: Transcript['running'], elsewhere: readonly OpenElsewhere[]): string[] {
  const others = elsewhere.map(({ name, n }) => `Turn ${n} of "${oneLine(name)}"`);
  return [...(running === null ? [] : [`Turn ${running.n}`]), ...others];
}

function tilde(path: string): string {
  const home = homedir();
  const shown = oneLine(path);
  return shown === home ? '~' : shown.startsWith(`${home}/`) ? `~${shown.slice(home.length)}` : shown;
}

function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
