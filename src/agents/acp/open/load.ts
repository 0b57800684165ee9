import { setImmediate, setTimeout } from 'node:timers/promises';
import { type Comparison, compareTold, type ToldTurn } from '../../../core/restore/told.ts';
import { promptText } from '../../../core/turn/content.ts';
import type { OpenHow } from '../../../ports/agent.ts';
import { type Refusal, refused } from '../../shared/flight.ts';
import { asObject } from '../../shared/json.ts';
import type { AgentProgram } from '../known/description.ts';
import type { AcpOptions } from '../options.ts';
import type { AcpSession } from '../session/session.ts';
import { RepeatedHistory } from './repeated.ts';

/** What the agent answered when it opened a session, and how far that proves the session's history. */
export interface Answered {
  readonly response: Readonly<Record<string, unknown>>;
  readonly proof: 'counted' | 'consistent' | 'none';
  /** The last told turn that the session has only as a summary. Left out: the answer does not show it. */
  readonly condensed?: number;
}

/**
 * Opens a session by `session/load`, which repeats its history, and compares that with what we told the session. So we
 * notice an agent that reports success and opens the session without its history.
 */
export async function loadSession(
  session: AcpSession,
  params: object,
  { id, told }: Extract<OpenHow, { kind: 'resume' }>,
  { options, memory }: AgentProgram,
): Promise<Refusal | Answered> {
  const { hangsOn } = session.quirks;
  const hangs =
    hangsOn !== undefined &&
    (await told?.())?.some((turn) => hangsOn.test(`${promptText(turn.prompt)}\n${turn.reply ?? ''}`));
  if (hangs) return refused('refused', 'the session contains characters with which this agent cannot load it');
  const history = new RepeatedHistory(session.quirks);
  session.state.repeat((update) => {
    history.add(update);
    session.onRepeated?.(update);
  });
  const [answer, turns] = await Promise.all([
    session.connection.request('session/load', { ...params, sessionId: id }),
    told?.() ?? null,
  ]);
  const response = asObject(answer);
  if (isAnother(response, id)) return OPENED_ANOTHER;
  const compared = await whenRepeated(history, turns, session, options);
  session.state.repeated();
  // An agent that is gone may not have sent all of the history. That does not show that its session lacks something.
  session.connection.throwIfGone();
  if (compared.kind === 'lacking') {
    // An agent that loses only images still loads sessions without images.
    if (compared.what === 'turn') memory.loadedIncomplete(id, compared.detail);
    return refused('lacking', `the agent opened the session without its history: ${compared.detail}`);
  }
  if (compared.kind === 'beyond') return refused('diverged', compared.detail);
  // Without anything to compare, a repeated message at least shows that the session is not empty.
  const shown = turns === null ? !history.empty : compared.found > 0;
  if (turns !== null && shown) memory.loadedWhole();
  return { response, proof: shown ? 'consistent' : 'none', condensed: compared.condensedTo };
}

export const OPENED_ANOTHER: Refusal = refused('not_found', 'the agent opened another session instead');

/** Some agents take an unknown id for a title, or open a new session. */
export function isAnother({ sessionId }: Readonly<Record<string, unknown>>, id: string): boolean {
  return sessionId !== undefined && sessionId !== null && sessionId !== id;
}

/** How often we look whether more of the history has come. */
const LOOK_MS = 20;
/** An agent that sends its history late may send more than the turns that we know of. */
const QUIET_WHEN_WHOLE_MS = 200;

/**
 * The history should be there when the agent says that it is loaded. Some agents send it afterwards. We wait until it is complete
 * and the agent is quiet, or until the agent has been quiet for too long.
 */
async function whenRepeated(
  history: RepeatedHistory,
  told: readonly ToldTurn[] | null,
  { connection, onRepeated }: AcpSession,
  { quietMs, lateMs }: AcpOptions,
): Promise<Comparison> {
  const compare = () => compareTold(history.messages(), told ?? []);
  const isWhole = (compared: Comparison) => {
    // If we know of no turn, the comparison is consistent before anything has come.
    if (compared.kind === 'consistent' && compared.found === 0)
      return told === null ? !history.empty : told.length === 0;
    return compared.kind !== 'lacking';
  };
  // The history is needed as a whole, and the protocol does not say how long it is.
  const isEnough = (compared: Comparison) => onRepeated === null && isWhole(compared);
  let compared = compare();
  if (isEnough(compared)) return compared;
  const begun = performance.now();
  let [seen, quietSince, now] = [history.updates, begun, begun];
  while (!connection.gone && now - begun < lateMs) {
    await setTimeout(Math.min(LOOK_MS, quietMs));
    // After our process was suspended, timers run before what came meanwhile is read.
    await setImmediate();
    now = performance.now();
    if (history.updates > seen) {
      [seen, quietSince] = [history.updates, now];
      compared = compare();
    } else if (now - quietSince >= (isEnough(compared) ? Math.min(quietMs, QUIET_WHEN_WHOLE_MS) : quietMs)) break;
  }
  return compare();
}
