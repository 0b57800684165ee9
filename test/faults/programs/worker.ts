import { library } from '../../program.ts';
import { settingsFor } from '../harness/agents.ts';
import { input, onCommand, ready } from '../harness/commands.ts';

/** Runs every conversation of the data home, until it is killed. */
const { mark, engine, ...place } = input<{ home: string; store?: string; mark: string; engine: object }>();

onCommand(() => {});
const { open } = await library();
await open({ ...place, settings: settingsFor(mark), engine });
ready();
