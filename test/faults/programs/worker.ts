import { open } from '../../../src/index.ts';
import { settingsFor } from '../harness/agents.ts';
import { input, onCommand, ready } from '../harness/commands.ts';

/** A worker of the home: runs every conversation there is, until it is killed. */
const { home, mark, engine } = input<{ home: string; mark: string; engine: object }>();

onCommand(() => {});
await open({ home, settings: settingsFor(mark), engine });
ready();
