import { type Comparison, compareTold, type ToldTurn } from '../../../core/told.ts';
import type { Opened, OpenHow } from '../../../ports/agent.ts';
import { asObject } from '../connection/capabilities.ts';
import type { NoToolsProfile } from '../known/profiles.ts';
import type { AcpOptions } from '../options.ts';
import type { AcpSession } from '../session/session.ts';
import type { Opener } from './open.ts';
import { RepeatedHistory } from './repeated.ts';
import { applySettings } from './session-settings.ts';

/**
 * Opens a session by `session/load`, which repeats its history, and compares that with what we told it. An agent that says yes
 * and does not have it is found out here.
 */
export async function loadSession(
  session: AcpSession,
  place: Readonly<Record<string, unknown>>,
  { id, told }: Extract<OpenHow, { kind: 'resume' }>,
  opener: Opener,
  profile: NoToolsProfile | null,
): Promise<Opened> {
  const history = new RepeatedHistory();
  const heard = new Heard();
  session.updates.onRepeated = (update) => {
    history.add(update as Readonly<Record<string, unknown>>);
    heard.something();
  };
  const [response, turns] = await Promise.all([
    session.connection.request('session/load', { ...place, sessionId: id }),
    told?.() ?? null,
  ]);
  if (isAnother(response, id)) return { ok: false, reason: 'not_found', message: OPENED_ANOTHER };
  void session.connection.over.then(() => heard.noMore());
  const compared = await settled(history, turns, heard, opener.options);
  session.updates.onRepeated = null;
  // It may have been in the middle of its history: what it did not come to say is no lie.
  session.connection.throwIfGone();
  if (compared.kind === 'lacking') {
    opener.lacked(id, compared.detail);
    return { ok: false, reason: 'lacking', message: `the agent says that it is loaded, but ${compared.detail}` };
  }
  if (compared.kind === 'beyond') return { ok: false, reason: 'diverged', message: compared.detail };
  // Nothing to compare with: what it repeats shows at least that it has something.
  const shown = turns === null ? !history.empty : compared.found > 0;
  if (turns !== null && shown) opener.loaded();
  await applySettings(session, asObject(response), opener, profile);
  return { ok: true, session, proof: shown ? 'consistent' : 'none' };
}

export const OPENED_ANOTHER = 'the agent opened another session instead';

/** Claude takes what is no id for a title, and no id at all for a new session. */
export function isAnother(response: unknown, id: string): boolean {
  const { sessionId } = asObject(response);
  return sessionId !== undefined && sessionId !== null && sessionId !== id;
}

/**
 * The history should be there when the agent says that it is loaded. Some send it afterwards: those are waited for until it is
 * complete and they are quiet, or until they have been quiet for too long.
 */
async function settled(
  history: RepeatedHistory,
  told: readonly ToldTurn[] | null,
  heard: Heard,
  { quietMs, lateMs }: AcpOptions,
): Promise<Comparison> {
  const compare = () => compareTold(history.messages(), told ?? []);
  const whole = () => {
    const compared = compare();
    // Where nothing has to be there, all is there before anything was seen.
    if (compared.kind === 'consistent' && compared.found === 0)
      return told === null ? !history.empty : told.length === 0;
    return compared.kind !== 'lacking';
  };
  if (whole()) return compare();
  const until = performance.now() + lateMs;
  while (performance.now() < until) {
    const ms = whole() ? Math.min(quietMs, SETTLE_MS) : quietMs;
    if (!(await heard.within(Math.min(ms, until - performance.now())))) break;
  }
  return compare();
}

/** An agent that sends its history late may be in the middle of it when all that we know of is there. */
const SETTLE_MS = 200;

/** Whether something came since it was last asked. */
class Heard {
  #came = false;
  #over = false;
  #wake: (() => void) | null = null;

  something(): void {
    this.#came = true;
    this.#wake?.();
  }

  /** Nothing will come any more, and nobody need wait for it. */
  noMore(): void {
    this.#over = true;
    this.#wake?.();
  }

  /** False: nothing came for so long, or will come. */
  async within(ms: number): Promise<boolean> {
    if (!this.#came && !this.#over) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        this.#wake = () => {
          clearTimeout(timer);
          // What comes along with it is taken together.
          setImmediate(resolve);
        };
      });
      this.#wake = null;
    }
    const came = this.#came;
    this.#came = false;
    return came;
  }
}
