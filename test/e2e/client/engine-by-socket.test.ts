// Runs tests of the embedded engine through a server, over its unix socket.
import { reachBy } from '../support/served.ts';

reachBy('socket');
await import('../engine/cancel.test.ts');
await import('../engine/follow.test.ts');
await import('../engine/permissions.test.ts');
await import('../engine/owners.test.ts');
await import('../engine/spending.test.ts');
await import('../engine/time-limits.test.ts');
