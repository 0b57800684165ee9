import { input, onCommand, ready } from '../harness/commands.ts';
import { openTasks } from '../harness/open-tasks.ts';

/** Works on every task of the home, until it is killed. Its agent is a double in this process: what is tried is the queue. */
const { parallel, ...place } = input<{ home: string; store?: string; parallel: number }>();

onCommand(() => {});
await openTasks(place, { claims: 'all', parallel });
ready();
