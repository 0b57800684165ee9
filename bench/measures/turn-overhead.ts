import type { AgentSession } from '../../src/ports/agent.ts';
import type { Measure } from '../finding.ts';
import { BenchHome } from '../support/bench-home.ts';
import { bytesWritten } from '../support/bytes-written.ts';
import { LogWrite } from '../support/log-write.ts';
import { median, quantile } from '../support/statistics.ts';
import { idle, TurnWatch } from '../support/turn-watch.ts';

const PROMPT = '/say Hello.';
/** For systems that do not report the bytes written: about the size of a turn's commits up to its first event. */
const USUAL_BYTES = 107_000;

/**
 * From `submit` to the first words of the answer, durable and seen by a follower, in a warm session; compared with the same prompt given
 * to the agent directly. The two, and the writes to the disk, alternate, so that the machine is the same for all three.
 */
const measure: Measure = async ({ quick }) => {
  await using home = new BenchHome();
  const { engine, parts, queue } = await home.open();
  const { id } = await engine.ensure({ key: 'bench' });
  const watch = new TurnWatch(engine, id, 0);

  const turn = async () => {
    const commits = queue.commits;
    const bytes = bytesWritten() ?? 0;
    const start = performance.now();
    const { turn } = await engine.submit(id, PROMPT);
    const accepted = performance.now() - start;
    const first = (await watch.first(turn.id)) - start;
    const toFirst = { commits: queue.commits - commits, bytes: (bytesWritten() ?? USUAL_BYTES) - bytes };
    const ended = (await watch.ended(turn.id)) - start;
    return { accepted, first, ended, ...toFirst, commitsInAll: queue.commits - commits };
  };

  const direct = await openDirectly();
  const turns: Awaited<ReturnType<typeof turn>>[] = [];
  for (let i = 0; i < (quick ? 20 : 300); i += 1) {
    turns.push(await turn());
    await firstUpdate(direct);
  }
  const commits = median(turns.map((one) => one.commits));
  const bytes = Math.round(median(turns.splice(0).map((one) => one.bytes)) / commits);
  const log = new LogWrite(home.path, bytes);
  const directly: number[] = [];
  const writes: number[] = [];
  for (let i = 0; i < (quick ? 20 : 1_000); i += 1) {
    turns.push(await turn());
    await idle();
    directly.push(await firstUpdate(direct));
    await idle();
    writes.push(log.once());
    await idle();
  }
  log.close();
  await direct.close();
  await watch.stop();

  const first = median(turns.map((one) => one.first));
  const alone = median(directly);
  const write = median(writes);
  const beside = first - alone - commits * write;
  const ms = (value: number) => value.toFixed(3);
  return [
    {
      name: 'turn overhead beside the fsyncs, p50',
      value: beside,
      unit: 'ms',
      target: { kind: 'must', most: 1 },
      note:
        `${ms(first)} ms from submit to the first update seen by a follower, less ${ms(alone)} ms for the same prompt ` +
        `given to the agent directly, less ${commits} fsyncs of ${ms(write)} ms (with ${bytes} bytes to write each)`,
    },
    {
      name: 'fsyncs from submit to the first event',
      value: commits,
      unit: '',
      target: { kind: 'must', most: 4 },
      note: `commits counted, of which each is one fsync of the log; ${median(turns.map((one) => one.commitsInAll))} in the whole turn`,
    },
    {
      name: 'turn overhead with the fsyncs, p50',
      value: first - alone,
      unit: 'ms',
      target: null,
      note: `${(first / alone).toFixed(1)} × the agent alone; p99 ${ms(
        quantile(
          turns.map((one) => one.first),
          0.99,
        ) - alone,
      )} ms`,
    },
    {
      name: 'submit until accepted, p50',
      value: median(turns.map((one) => one.accepted)),
      unit: 'ms',
      target: null,
      note: 'durable, one fsync in it',
    },
    {
      name: 'submit until the turn has ended, p50',
      value: median(turns.map((one) => one.ended)),
      unit: 'ms',
      target: null,
      note: 'the record, the watermark and the receipt are durable',
    },
  ];

  async function openDirectly(): Promise<AgentSession> {
    const agent = parts.agents.get('scripted')?.agent;
    const sandbox = await parts.sandboxes.open('direct', { cwd: null });
    const signal = new AbortController().signal;
    const opened = await agent?.open({ how: { kind: 'new', id: null }, sandbox, noTools: false, signal });
    if (!opened?.ok) throw new Error('the agent cannot be opened');
    return opened.session;
  }
};

async function firstUpdate(session: AgentSession): Promise<number> {
  const start = performance.now();
  let first = Number.NaN;
  lastPrompt += 1;
  const prompt = {
    id: `direct-${lastPrompt}`,
    content: [{ type: 'text', text: PROMPT } as const],
    expected: null,
    signal: new AbortController().signal,
  };
  for await (const event of session.prompt(prompt)) {
    if (event.type === 'update' && Number.isNaN(first)) first = performance.now() - start;
  }
  return first;
}
let lastPrompt = 0;

export default measure;
