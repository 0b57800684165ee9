// What holds of a tracker holds of it over HTTP: the very tests of the embedded one, through a server and `fetch`.
import { reachBy } from '../support/served.ts';

reachBy('tcp');
await import('../stories/tracker.test.ts');
await import('../stories/tracker-misuse.test.ts');
