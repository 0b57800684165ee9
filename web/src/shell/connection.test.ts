import { describe, expect, test } from 'vitest';
import { type ConnectionFacts, stripOf } from './connection.ts';

const at = (state: ConnectionFacts['connection']['state'], more: Partial<ConnectionFacts> = {}, missed = 0) => ({
  ...{
    connection: { state, since: 1_000, missed, failure: null },
    isOver: false,
    isOutdated: false,
    hasNetwork: true,
    wasLost: false,
  },
  ...more,
});

const GONE = {
  ...({ state: 'waiting', since: 1_000, missed: 0 } as const),
  failure: { code: 'storage_gone', message: 'The data file was moved.' } as const,
};

describe('what the strip shows about the connection', () => {
  test.each<[string, ConnectionFacts, number, unknown]>([
    ['connected', at('open'), 99_000, null],
    ['lost for a moment', at('waiting'), 3_900, null],
    ['lost for 3 seconds', at('waiting'), 4_000, { kind: 'lost', since: 1_000, why: 'The server does not answer.' }],
    ['trying again', at('connecting'), 9_000, { kind: 'lost', since: 1_000, why: 'The server does not answer.' }],
    ['without a network', at('waiting', { hasNetwork: false }), 9_000, { why: 'This device is offline.' }],
    [
      'without its data file',
      at('waiting', { connection: GONE }),
      9_000,
      { kind: 'lost', why: 'The data file was moved.' },
    ],
    ['back after it was shown', at('open', { wasLost: true }, 12), 2_000, { kind: 'back', missed: 12 }],
    ['back for some seconds', at('open', { wasLost: true }, 12), 7_000, null],
    ['back before anybody noticed', at('open', {}, 12), 1_100, null],
    ['refused as too old', at('closed', { isOutdated: true }), 1_000, { kind: 'outdated' }],
    ['signed out', at('closed', { isOver: true }), 1_000, { kind: 'signed-out' }],
  ])('%s', (_name, facts, now, strip) => {
    if (strip === null) expect(stripOf(facts, now)).toBeNull();
    else expect(stripOf(facts, now)).toMatchObject(strip as object);
  });
});
