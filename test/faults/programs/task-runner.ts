import { input, onCommand, ready } from '../harness/commands.ts';
import { openTasks } from '../harness/open-tasks.ts';

/** Works on every task of the data home, until it is killed. Its agent is a test double in this process, because only the queue is tested. */
const { parallel, ...place } = input<{ home: string; store?: string; parallel: number }>();

onCommand(() => {});
await openTasks(place, { claims: 'all', parallel });
ready();
