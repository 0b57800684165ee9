// Opens Throughline, takes one event of a conversation, and never closes anything. `waits`: it then asks for the next one.
import { library } from '../../program.ts';

const [options = '{}', conversation = '', what = ''] = process.argv.slice(2);
const { open } = await library();
const tl = await open(JSON.parse(options));
const reader = tl.engine.follow(conversation)[Symbol.asyncIterator]();
console.log('took', (await reader.next()).value.seq);
if (what === 'waits') {
  const next = reader.next();
  // Does not keep the process itself: it is said only by one that something else keeps, long after it has nothing left to do.
  setTimeout(() => console.log('still here'), 300).unref();
  console.log('took', (await next).value.seq);
}
