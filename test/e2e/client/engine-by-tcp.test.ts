// What holds of an engine holds of it over HTTP: the very tests of the embedded one, through a server and `fetch`.
import { reachBy } from '../support/served.ts';

reachBy('tcp');
await import('../engine/pinned.test.ts');
await import('../engine/handoff.test.ts');
await import('../engine/reading.test.ts');
await import('../engine/erase.test.ts');
