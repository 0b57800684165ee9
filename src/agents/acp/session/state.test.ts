import { expect, test } from 'vitest';
import type { Flight } from '../../shared/flight.ts';
import { SessionState } from './state.ts';

const flight = {} as Flight;
const onUpdate = () => {};
const EVENTS = {
  repeat: (state: SessionState) => state.repeat(onUpdate),
  repeated: (state: SessionState) => state.repeated(),
  begin: (state: SessionState) => state.begin(flight),
  answered: (state: SessionState) => state.answered(),
  finish: (state: SessionState) => state.finish(),
};

test.each<[(keyof typeof EVENTS)[], SessionState['kind']]>([
  [[], 'free'],
  [['repeat'], 'repeating'],
  [['repeat', 'repeated'], 'free'],
  [['begin'], 'prompting'],
  [['begin', 'answered'], 'answered'],
  [['begin', 'answered', 'finish'], 'free'],
  [['begin', 'finish'], 'free'],
  // An answer to a prompt whose turn is finished changes nothing.
  [['begin', 'finish', 'answered'], 'free'],
  [['answered'], 'free'],
])('after %j the session is %s', (events, kind) => {
  const state = new SessionState();
  for (const event of events) EVENTS[event](state);
  expect(state.kind).toBe(kind);
  expect(state.flight).toBe(kind === 'prompting' || kind === 'answered' ? flight : null);
  expect(state.onRepeated).toBe(kind === 'repeating' ? onUpdate : null);
});
