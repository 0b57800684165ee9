import { randomUUID } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { projectDir } from '../../src/agents/claude/transcript/locate.ts';
import { DEFAULT_RESTORE } from '../../src/core/restore/restore-settings.ts';
import type { Measure } from '../finding.ts';
import { ClaudeBench, type Seen } from '../support/claude-bench.ts';
import { history } from '../support/history.ts';
import { median } from '../support/statistics.ts';
import { TurnWatch } from '../support/turn-watch.ts';

const PROMPT = 'model: say Hello.';
/** Enough for the whole history, however its tokens are estimated. */
const BUDGET = 1_000_000;

/**
 * The first turn after a restart in a long conversation: Throughline writes Claude's transcript from its records, and Claude resumes it.
 * Compared with the SDK alone, which resumes an existing transcript of the same length. The two alternate.
 */
const measure: Measure = async ({ quick }) => {
  await using bench = await ClaudeBench.start('claude-restore');
  if (bench === null) return [];
  const turns = quick ? 20 : 500;
  const { engine } = await bench.home.open({ agent: bench.agent(), engine: { maxWarm: 0 } });
  const plain = history(turns, 'claude');
  const restore = { ...DEFAULT_RESTORE, budgetTokens: BUDGET };
  const exported = { ...plain, conversation: { ...plain.conversation, restore } };

  const rehydrated = async (key: string) => {
    const cwd = bench.directory(key);
    const { id, lastSeq } = await engine.import(exported, { key, cwd });
    const watch = new TurnWatch(engine, id, lastSeq);
    const start = performance.now();
    const { turn } = await engine.submit(id, PROMPT);
    const first = (await watch.first(turn.id)) - start;
    const ended = (await watch.ended(turn.id)) - start;
    await watch.stop();
    const { receipt } = await engine.answerOf(turn.id);
    if (receipt?.rung !== 'rehydrate' || receipt.carried !== turns) throw new Error(JSON.stringify(receipt));
    return { seen: { first, ended }, file: fileOf(cwd, receipt.sessionId ?? '') };
  };
  const fileOf = (cwd: string, id: string) => join(projectDir(bench.env, realpathSync(cwd)), `${id}.jsonl`);

  const { file: model } = await rehydrated('model');
  const resumed = async (name: string): Promise<Seen> => {
    const cwd = bench.directory(name);
    const id = randomUUID();
    const file = fileOf(cwd, id);
    mkdirSync(dirname(file), { recursive: true });
    cpSync(model, file);
    const lines = readFileSync(file, 'utf8');
    const { sessionId, cwd: before } = JSON.parse(lines.slice(0, lines.indexOf('\n')));
    writeFileSync(file, lines.replaceAll(sessionId, id).replaceAll(before, cwd));
    const start = performance.now();
    const query = await bench.query(cwd, { resume: id });
    const opened = performance.now() - start;
    const { first, ended } = await query.ask(PROMPT);
    await query.close();
    if (query.sessionId !== id) throw new Error('Claude resumed another session');
    return { first: first + opened, ended: ended + opened };
  };

  const times: { ours: Seen[]; theirs: Seen[] } = { ours: [], theirs: [] };
  for (let i = 0; i < (quick ? 2 : 12); i += 1) {
    times.theirs.push(await resumed(`resumed-${i}`));
    times.ours.push((await rehydrated(`rehydrated-${i}`)).seen);
  }
  const first = (seen: readonly Seen[]) => median(seen.map((one) => one.first));
  const [ours, theirs] = [first(times.ours), first(times.theirs)];
  return [
    {
      name: `Claude: ${turns} turns restored by rehydration ÷ its own resume, p50`,
      value: ours / theirs,
      unit: '×',
      target: { kind: 'aim', most: 1.2 },
      note:
        `${ours.toFixed(0)} and ${theirs.toFixed(0)} ms from the prompt to the first of the answer; both start Claude, and ours ` +
        'writes the transcript, proves it and walks its chain',
    },
  ];
};

export default measure;
