// Agents work on goals until their gates pass. The second task knows what the first was told: they share a milestone.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from 'throughline';

const home = mkdtempSync(join(tmpdir(), 'throughline-'));
await using tl = await open({ home, settings: { agents: { scripted: { adapter: 'scripted' } } } });

const tasks = await tl.tasks.run([
  {
    name: 'fill the log',
    goal: 'The codeword is amber. Write a line into log.\n/tool append log',
    // Fails until there are two lines, and says what to do; the scripted agent takes that at its word.
    gate: 'test $(wc -l < log) -ge 2 || { echo "one line is not enough"; echo "/tool append log"; exit 1; }',
    milestone: 'first steps',
    budget: '10k tokens',
  },
  { name: 'remember', goal: 'Which codewords have you seen?', milestone: 'first steps' },
]);

for (const { name, state, progress } of tasks) {
  console.log(`${name}: ${state} after ${progress.turns} turns, because: ${progress.decision?.reason}`);
}
const { turns, gates } = await tl.tasks.report('fill the log');
console.log(`gate: ${gates.map(({ result }) => `${result.verdict} (${result.summary})`).join(', ')}`);
console.log(`sessions: ${new Set(turns.map(({ sessionId }) => sessionId)).size}`);
const last = (await tl.tasks.report('remember')).turns.at(-1);
console.log(`reply: ${(await tl.engine.answerOf(last?.turnId ?? '')).reply}`);
