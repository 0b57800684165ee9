import type { PublicTurn } from '../../../src/core/public/turn.ts';
import type { EngineSettings } from '../../../src/engine/parts.ts';
import type { Engine, SubmitOptions } from '../../../src/ports/engine.ts';
import { type Assembly, assemble } from './assemble.ts';
import type { Place } from './place.ts';

/** An engine in the test's own process, which opens a data home that other processes have used. */
export interface Newcomer extends AsyncDisposable {
  readonly engine: Engine;
  /** Submits a turn, in a new conversation if there is none of that key, and waits for its end. */
  run(key: string, prompt: string, options?: SubmitOptions): Promise<PublicTurn & { reply: string }>;
  /** Waits for the end of a turn. */
  end(turn: string): Promise<PublicTurn & { reply: string }>;
}

export async function newcomer(
  { home, mark }: Place,
  settings: Partial<EngineSettings>,
  where: Pick<Assembly, 'clock' | 'machine'> = {},
): Promise<Newcomer> {
  const engine = await assemble({ home, mark, engine: settings, ...where });
  async function end(id: string): Promise<PublicTurn & { reply: string }> {
    const { conversationId } = await engine.turn(id);
    const over = AbortSignal.timeout(120_000);
    for await (const { kind, turnId, payload } of engine.follow(conversationId, { signal: over })) {
      if (kind === 'turn.ended' && turnId === id) return { ...(await engine.turn(id)), reply: payload.reply };
    }
    throw new Error(`turn ${id} is still ${(await engine.turn(id)).state}`);
  }
  return {
    engine,
    end,
    async run(key, prompt, options) {
      const { id } = await engine.ensure({ key });
      const { turn } = await engine.submit(id, prompt, options);
      return end(turn.id);
    },
    [Symbol.asyncDispose]: () => engine.close({ graceMs: 0 }),
  };
}
