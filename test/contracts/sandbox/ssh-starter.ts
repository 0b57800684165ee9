// Starts a program in a sandbox of another machine, and does not end it.
import { processesAt } from '../../../src/host/processes.ts';
import { sshSandboxes } from '../../../src/sandboxes/ssh/ssh-sandboxes.ts';

const [settings = '', ...words] = process.argv.slice(2);
const sandboxes = sshSandboxes({ ...JSON.parse(settings), processes: processesAt('test') });
const sandbox = await sandboxes.open('one', { cwd: null });
const child = await sandbox.spawn(words, { env: {} });
console.log(JSON.stringify(child.identity));
await child.exited;
