// Runs the tests of the embedded tracker through a server, with `fetch`.
import { reachBy } from '../support/served.ts';

reachBy('tcp');
await import('../stories/tracker.test.ts');
await import('../stories/tracker-misuse.test.ts');
