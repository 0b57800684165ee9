import { describe, expect, test } from 'vitest';
import { codewordPrompt, inventCodeword, isDemo, QUESTION, type StepFacts, type StepTurn, stepsOf } from './steps.ts';

const turn = (n: number, prompt: string, reply = '', state: StepTurn['state'] = 'completed') => ({
  ...{ n, prompt, reply, state },
});
const demo = [turn(1, 'The codeword is amber-heron'), turn(2, QUESTION, 'amber-heron')];
const told = turn(3, codewordPrompt('jade-otter'), 'Noted.');
const steps = (facts: Partial<StepFacts>) =>
  stepsOf({ word: 'jade-otter', turns: demo, hasLive: false, endedAfter: 0, ...facts });

describe('the three steps', () => {
  test.each<[string, Partial<StepFacts>, [number, boolean, boolean]]>([
    ['nothing was done: the prompts of the demo itself do not count', {}, [0, false, false]],
    ['the codeword runs', { turns: [...demo, { ...told, state: 'running' }] }, [0, false, false]],
    ['the codeword failed', { turns: [...demo, { ...told, state: 'failed' }] }, [0, false, false]],
    [
      'the codeword was answered, and its session is live',
      { turns: [...demo, told], hasLive: true },
      [3, false, false],
    ],
    ['the session has ended', { turns: [...demo, told] }, [3, true, false]],
    [
      'asked while the session was live: that proves nothing',
      { turns: [...demo, told, turn(4, QUESTION, 'amber-heron, jade-otter')], hasLive: true },
      [3, false, false],
    ],
    [
      'asked, and the answer has not arrived yet',
      { turns: [...demo, told, turn(4, QUESTION, '', 'running')], endedAfter: 3, hasLive: true },
      [3, true, false],
    ],
    [
      'asked after the session had ended',
      { turns: [...demo, told, turn(4, QUESTION, 'amber-heron, jade-otter')], endedAfter: 3, hasLive: true },
      [3, true, true],
    ],
    [
      'asked while the session was live, which has ended since: it must be asked again',
      { turns: [...demo, told, turn(4, QUESTION, 'amber-heron, jade-otter')], endedAfter: 4 },
      [3, true, false],
    ],
    [
      'the agent has forgotten: the last step is not completed',
      { turns: [...demo, told, turn(4, QUESTION, 'I have seen no codewords.')], endedAfter: 3, hasLive: true },
      [3, true, false],
    ],
  ])('%s', (_name, facts, [heard, killed, asked]) => {
    expect(steps(facts)).toEqual({ told: heard, killed, asked });
  });

  test('are shown only in the demo, with a codeword of one word', () => {
    expect(['demo', 'demo-claude', 'demo-2', null].map(isDemo)).toEqual([true, true, false, false]);
    expect(inventCodeword(() => 0.999)).toMatch(/^[a-z]+-[a-z]+-\d\d$/);
  });
});
