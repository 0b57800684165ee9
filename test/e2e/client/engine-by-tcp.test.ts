// Runs tests of the embedded engine through a server, with `fetch`.
import { reachBy } from '../support/served.ts';

reachBy('tcp');
await import('../engine/answer.test.ts');
await import('../engine/messages.test.ts');
await import('../engine/pinned.test.ts');
await import('../engine/handoff.test.ts');
await import('../engine/reading.test.ts');
await import('../engine/erase.test.ts');
await import('../engine/verbs.test.ts');
await import('../engine/told.test.ts');
await import('../engine/pending.test.ts');
await import('../engine/queue.test.ts');
await import('../engine/live.test.ts');
await import('../engine/sandboxes.test.ts');
await import('../engine/worktree.test.ts');
