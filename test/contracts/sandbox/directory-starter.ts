// Starts a program in a sandbox, and does not end it.
import { processesAt } from '../../../src/host/processes.ts';
import { directorySandboxes } from '../../../src/sandboxes/directory/directory-sandboxes.ts';

const [root = '', ...words] = process.argv.slice(2);
const sandboxes = directorySandboxes({ root, place: 'test', processes: processesAt('test') });
const sandbox = await sandboxes.open('one', { cwd: null });
const child = await sandbox.spawn(words, { env: {} });
console.log(JSON.stringify(child.identity));
await child.exited;
