// A conversation that continues after the program and the agent's session have ended.
// Run it again with the home that it prints: node examples/quickstart.ts HOME
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from 'throughline';

const home = process.argv[2] ?? mkdtempSync(join(tmpdir(), 'throughline-'));
console.log('home:', home);

// Without `home`, the data is in $THROUGHLINE_HOME or the XDG directory. Without `settings`, throughline.config.json is read.
await using tl = await open({ home, settings: { agents: { scripted: { adapter: 'scripted' } } } });
const chat = tl.conversation('quickstart', { agent: 'scripted' });

// The text of the reply as it comes. There is also `events`: everything that happens, as it is stored.
const answer = chat.send('The codeword is amber.');
for await (const text of answer.textStream) console.log('text:', text);
console.log('ended:', (await answer).turn.state);

// Or just the answer, with the receipt: how the session got its context.
const { reply, receipt } = await chat.ask('Which codewords have you seen?');
console.log('reply:', reply);
console.log(`receipt: ${receipt.rung}, ${receipt.carried} turns carried, ${receipt.dropped} dropped, ${receipt.proof}`);

const { contexts, sessions } = await chat.summary();
console.log(`summary: ${contexts} turns in ${sessions} session${sessions === 1 ? '' : 's'}`);
