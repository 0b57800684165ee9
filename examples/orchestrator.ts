// An orchestrator: agents work on a plan until its gates pass. Kill it at any time and start it again: it continues where it stopped.
// node examples/orchestrator.ts HOME DIRECTORY
import { open } from 'throughline';

const [home = '', cwd = '.'] = process.argv.slice(2);
await using tl = await open({ home, settings: { agents: { scripted: { adapter: 'scripted' } } } });

const seen = await tl.tasks.lastSeq();
// The same request id with the same plan gives the same tasks, so a second start adds nothing.
const { tasks: plan, duplicate } = await tl.tasks.add(
  {
    parallel: 2,
    // One milestone is one conversation: each task knows what was said in the tasks before it. They run one after another.
    defaults: { agent: 'scripted', milestone: 'release', cwd, maxIterations: 3, retryInterrupted: 2 },
    tasks: [
      {
        name: 'changelog',
        goal: 'The codeword is amber. Write two lines into CHANGES.\n/tool append CHANGES',
        // What the gate prints goes back to the agent, and the agent tries again.
        gate: 'test $(wc -l < CHANGES) -ge 2 || { echo "Two lines, please."; echo "/tool append CHANGES"; exit 1; }',
      },
      { name: 'version', goal: 'Set the version.\n/tool write VERSION', gate: 'test -s APPROVED', after: 'changelog' },
      { name: 'announce', goal: 'Which codewords have you seen?', after: 'version' },
    ],
  },
  { requestId: 'release-1.0' },
);
console.log(duplicate ? 'continuing' : `planned: ${plan.map(({ name }) => name).join(', ')}`);

const names = new Map(plan.map(({ id, name }) => [id, name]));
const watching = new AbortController();
const watched = (async () => {
  for await (const { kind, taskId, payload } of tl.tasks.follow({ after: seen, signal: watching.signal })) {
    if (kind === 'task.decided') console.log(`${names.get(taskId)}: ${payload.decision}. ${payload.reason}`);
  }
})();

const ids = [...names.keys()];
let tasks = await tl.tasks.waitFor(ids);
// A task that has no turns left, or asks, waits for a person. Here a rule answers in place of the person, once.
const stuck = tasks.filter(({ state, progress }) => (state === 'failed' || state === 'asking') && progress.round === 1);
for (const { id } of stuck)
  await tl.tasks.retry(id, { say: 'It is approved.\n/tool write APPROVED', maxIterations: 2 });
if (stuck.length > 0) tasks = await tl.tasks.waitFor(ids);
watching.abort();
await watched;

const reports = await Promise.all(ids.map((id) => tl.tasks.report(id)));
for (const { task } of reports) console.log(`${task.name}: ${task.state} after ${task.progress.turns} turns`);
const sessions = new Set(reports.flatMap(({ turns }) => turns.map(({ sessionId }) => sessionId)));
console.log(`sessions: ${sessions.size}`);
const said = await tl.conversation(tasks[0]?.progress.conversationId ?? '').show();
console.log(`last reply: ${said.turns.at(-1)?.reply}`);
