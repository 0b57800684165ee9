// Opens Throughline, reads one event of a conversation, and closes nothing. With the argument `waits` it then reads the next one.
import { library } from '../../program.ts';

const [options = '{}', conversation = '', mode = ''] = process.argv.slice(2);
const { open } = await library();
const tl = await open(JSON.parse(options));
const reader = tl.engine.follow(conversation)[Symbol.asyncIterator]();
console.log('took', (await reader.next()).value.seq);
if (mode === 'waits') {
  const next = reader.next();
  // This timer does not keep the process alive. It fires only if the wait for the event does.
  setTimeout(() => console.log('still here'), 300).unref();
  console.log('took', (await next).value.seq);
}
