// What holds of an engine holds of it over HTTP: the very tests of the embedded one, through a server and its unix socket.
import { reachBy } from '../support/served.ts';

reachBy('socket');
await import('../engine/cancel.test.ts');
await import('../engine/follow.test.ts');
await import('../engine/permissions.test.ts');
await import('../engine/owners.test.ts');
await import('../engine/spending.test.ts');
await import('../engine/time-limits.test.ts');
