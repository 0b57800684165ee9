// A program that follows one conversation, and prints when it saw each event: `[seq, time]`, one per line.
import { compose } from '../../src/compose.ts';
import { systemClock } from '../../src/host/clock.ts';

const [home = '', conversation = '', store] = process.argv.slice(2);
const { engine } = await compose({ home, settings: store === undefined ? {} : { store } });
process.stdin.resume().once('end', () => process.exit(0));
for await (const { seq } of engine.follow(conversation)) {
  process.stdout.write(`${JSON.stringify([seq, systemClock.monotonic()])}\n`);
}
