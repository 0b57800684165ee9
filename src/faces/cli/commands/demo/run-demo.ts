import { randomInt, randomUUID } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { errorOf } from '../../../../core/errors.ts';
import type { PublicReceipt } from '../../../../core/public/session.ts';
import { chunkText } from '../../../../core/turn/update.ts';
import type { AgentSession, OpenHow } from '../../../../ports/agent.ts';
import type { Engine } from '../../../../ports/engine.ts';
import type { DemoParts } from '../../../../ports/server.ts';

const KEY = 'demo';
const QUESTION = 'Which codewords have you seen?';

/** The steps of the demo, in this order. */
export type DemoStep =
  | { readonly step: 'told'; readonly codeword: string; readonly prompt: string; readonly reply: string }
  | ({ readonly step: 'lost' } & Loss)
  | ({ readonly step: 'without'; readonly prompt: string; readonly remembered: boolean } & ControlAnswer)
  | {
      readonly step: 'with';
      readonly prompt: string;
      readonly remembered: boolean;
      readonly reply: string;
      readonly receipt: PublicReceipt | null;
    };

/**
 * Tells the agent a codeword, loses its session, and asks for the codeword: without Throughline and with it. The codeword is
 * random, and each answer is compared with it.
 */
export async function* runDemo(parts: DemoParts): AsyncGenerator<DemoStep> {
  const { engine, cwd } = parts;
  const codeword = drawCodeword();
  const prompt = `The codeword is ${codeword}`;
  await engine.ensure({ key: KEY, ...(cwd === null ? {} : { cwd }) });
  const told = await ask(engine, prompt);
  yield { step: 'told', codeword, prompt, reply: told.reply };

  const loss = await loseSession(parts);
  yield { step: 'lost', ...loss };

  const control = await askWithoutThroughline(parts, loss.sessionId);
  yield { step: 'without', prompt: QUESTION, remembered: control.reply.includes(codeword), ...control };

  const { reply, receipt } = await ask(engine, QUESTION);
  yield { step: 'with', prompt: QUESTION, remembered: reply.includes(codeword), reply, receipt };
}

const FIRST = ['amber', 'cobalt', 'crimson', 'ivory', 'jade', 'ochre', 'scarlet', 'silver', 'teal', 'violet'];
const SECOND = ['badger', 'falcon', 'heron', 'lynx', 'marten', 'osprey', 'otter', 'raven', 'stoat', 'wren'];

/** A new one every time, which no model can have learnt. */
function drawCodeword(): string {
  const pick = (words: readonly string[]) => words[randomInt(words.length)];
  return `${pick(FIRST)}-${pick(SECOND)}-${randomInt(1_000, 10_000)}`;
}

async function ask(engine: Engine, prompt: string): Promise<{ reply: string; receipt: PublicReceipt | null }> {
  const { turn, seq } = await engine.submit(KEY, prompt, { permissions: 'deny' }); // nobody is there to answer
  let receipt: PublicReceipt | null = null;
  for await (const event of engine.follow(KEY, { after: seq })) {
    if (event.turnId !== turn.id) continue;
    if (event.kind === 'restore.receipt') receipt = event.payload;
    if (event.kind !== 'turn.ended') continue;
    const { failure, reply } = event.payload;
    if (failure) throw errorOf(failure);
    return { reply, receipt };
  }
  throw new Error('The events ended before the turn did.');
}

interface Loss {
  readonly sessionId: string;
  readonly pid: number;
  readonly files: number;
}

/** The worst that can happen to a session: its process is killed and its files are deleted. Other files stay. */
async function loseSession({ engine, killProcess, sessionFiles }: DemoParts): Promise<Loss> {
  const [session] = await engine.sessions(KEY);
  const pid = session === undefined ? null : await killProcess(session.id);
  if (session === undefined || pid === null) throw new Error('The session has no process to kill.');
  const files = (await readdir(sessionFiles)).filter((name) => name.startsWith(session.id));
  for (const file of files) await rm(join(sessionFiles, file), { recursive: true });
  return { sessionId: session.id, pid, files: files.length };
}

interface ControlAnswer {
  readonly reply: string;
  /** What the agent said when asked to resume the saved session; null: it resumed it. */
  readonly refusal: string | null;
}

/** What a program does that keeps only the session's id: it resumes that session, or else starts a new one and asks there. */
async function askWithoutThroughline({ agent, sandbox }: DemoParts, savedId: string): Promise<ControlAnswer> {
  const { signal } = new AbortController();
  const open = (how: OpenHow) => agent.open({ how, sandbox, noTools: false, signal });
  const resumed = await open({ kind: 'resume', id: savedId });
  if (resumed.ok) return { reply: await askOnce(resumed.session, signal), refusal: null };
  const begun = await open({ kind: 'new', id: null });
  if (!begun.ok) throw new Error(`The agent cannot open a session: ${begun.message}`);
  return { reply: await askOnce(begun.session, signal), refusal: resumed.message };
}

async function askOnce(session: AgentSession, signal: AbortSignal): Promise<string> {
  const content = [{ type: 'text', text: QUESTION }] as const;
  let reply = '';
  try {
    for await (const event of session.prompt({ id: randomUUID(), content, expected: null, signal })) {
      if (event.type === 'update') reply += chunkText(event.update) ?? '';
    }
  } finally {
    await session.close();
  }
  return reply;
}
