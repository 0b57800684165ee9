// Runs the tests of the embedded tracker through a server, with `fetch`.
import { testsBy } from '../support/way.ts';

await testsBy('tcp', ['stories/tracker', 'stories/tracker-misuse']);
