import { ThroughlineError } from '../../../core/errors.ts';
import type { PublicReceipt } from '../../../core/public/session.ts';
import type { DemoParts } from '../../../ports/demo.ts';
import type { Engine } from '../../../ports/engine.ts';
import { drawCodeword } from './codeword.ts';
import { askWithoutThroughline, type ControlAnswer } from './control.ts';
import { type Loss, loseSession } from './lose-session.ts';

const KEY = 'demo';
const QUESTION = 'Which codewords have you seen?';

/** What happens, one after the other. */
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
 * Tells the agent a codeword, loses its session, and asks for the codeword: without Throughline and with it. The codeword
 * is random and each answer is compared with it: nothing here is for show.
 */
export async function* runDemo(parts: DemoParts): AsyncGenerator<DemoStep> {
  const { engine, agent, sandbox, cwd } = parts;
  const codeword = drawCodeword();
  const prompt = `The codeword is ${codeword}`;
  await engine.ensure({ key: KEY, ...(cwd === null ? {} : { cwd }) });
  const told = await ask(engine, prompt);
  yield { step: 'told', codeword, prompt, reply: told.reply };

  const loss = await loseSession(parts, KEY);
  yield { step: 'lost', ...loss };

  const control = await askWithoutThroughline({ agent, sandbox }, loss.sessionId, QUESTION);
  yield { step: 'without', prompt: QUESTION, remembered: control.reply.includes(codeword), ...control };

  const { reply, receipt } = await ask(engine, QUESTION);
  yield { step: 'with', prompt: QUESTION, remembered: reply.includes(codeword), reply, receipt };
}

async function ask(engine: Engine, prompt: string): Promise<{ reply: string; receipt: PublicReceipt | null }> {
  const { turn, seq } = await engine.submit(KEY, prompt, { permissions: 'deny' }); // nobody is there to answer
  let receipt: PublicReceipt | null = null;
  for await (const event of engine.follow(KEY, { after: seq })) {
    if (event.turnId !== turn.id) continue;
    if (event.kind === 'restore.receipt') receipt = event.payload;
    if (event.kind !== 'turn.ended') continue;
    const { failure, reply } = event.payload;
    if (failure) throw new ThroughlineError(failure.code, failure.message, failure.hint ? { hint: failure.hint } : {});
    return { reply, receipt };
  }
  throw new Error('The events ended before the turn did.');
}
