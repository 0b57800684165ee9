import { expect, test } from 'vitest';
import { checkEventNumber } from './event.ts';

const LOG = { lastSeq: 41, logId: 'this' };

test.each([
  [{ after: 0 }, null],
  [{ after: 41 }, null],
  [{ after: 41, log: 'this' }, null],
  [{ after: 42 }, 'There is no event 42 to continue after: the last one is 41.'],
  [{ after: 42, log: 'this' }, 'There is no event 42 to continue after: the last one is 41.'],
  [{ after: 3, log: 'other' }, 'The log "other" no longer exists. There is another one now.'],
  [{ after: 0, log: 'other' }, 'The log "other" no longer exists. There is another one now.'],
])('whether a reader can continue from %j', (from, message) => {
  const refused = () => checkEventNumber(from, LOG);
  if (message === null) expect(refused).not.toThrow();
  else expect(refused).toThrow(expect.objectContaining({ code: 'log_changed', message }));
});
