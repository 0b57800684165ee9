// Runs tests of the embedded engine through a server, over its unix socket.
import { testsBy } from '../support/way.ts';

await testsBy('socket', [
  'engine/cancel',
  'engine/follow',
  'engine/permissions',
  'engine/owners',
  'engine/spending',
  'engine/time-limits',
]);
