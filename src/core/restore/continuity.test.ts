import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { effectiveRestore, session, sessions, traits } from '../../../test/values/arbitrary.ts';
import { TRAITS } from '../../../test/values/plain.ts';
import { planContinuity, type Situation } from './continuity.ts';
import { continues, DEFAULT_RESTORE, type EffectiveRestore, RUNGS, type Rung } from './restore-settings.ts';
import { isUsable, SESSION_STATES } from './session.ts';

function situation(told: Partial<Situation> = {}): Situation {
  return { head: 3, sessions: [], live: null, traits: TRAITS, restore: DEFAULT_RESTORE, explicit: null, ...told };
}

const rungs = (told: Partial<Situation>) => planContinuity(situation(told)).steps.map((step) => step.rung);

/** Any possible situation: watermarks are never beyond the head, and the living session is in the list. */
const anySituation: fc.Arbitrary<Situation> = fc
  .record({
    head: fc.nat(12),
    sessions,
    traits,
    restore: effectiveRestore,
    live: fc.option(fc.nat(5)),
    repeats: fc.nat(12),
    rewinds: fc.boolean(),
    explicit: fc.option(fc.constantFrom('id-0', 'id-1', 'id-2', 'elsewhere'), { freq: 4 }),
  })
  .map(({ live, ...told }) => ({
    ...told,
    sessions: told.sessions.map((one) => ({ ...one, watermark: Math.min(one.watermark, told.head) })),
    live: live === null ? null : (told.sessions[live]?.ref ?? null),
  }));

const unnamed = anySituation.map((told) => ({ ...told, explicit: null }));
const property = (arbitrary: fc.Arbitrary<Situation>, holds: (told: Situation) => void) =>
  fc.assert(fc.property(arbitrary, holds), { numRuns: 1_000 });

describe('the ladder', () => {
  test("tries the living session first, then the agent's storage, then a new session with the history", () => {
    const held = session(0, { watermark: 3, state: 'live' });
    expect(rungs({ sessions: [held], live: held.ref })).toEqual(['live', 'resume', 'transcript']);
    const all = { ...TRAITS, rehydrate: true };
    expect(rungs({ sessions: [held], live: held.ref, traits: all })).toEqual([
      'live',
      'resume',
      'rehydrate',
      'transcript',
    ]);
  });

  test('never goes back to a session that diverged, even if it is in the lineage again', () => {
    const entries = [session(0, { id: 'x', state: 'dormant' }), session(1, { id: 'x', state: 'diverged' })];
    expect(planContinuity(situation({ sessions: entries, explicit: 'x' }))).toMatchObject({
      steps: [],
      refusal: expect.stringContaining('diverged'),
    });
  });

  test('does not trust an agent that has changed its session id, unless its storage can be read', () => {
    const moved = session(0, { watermark: 3, state: 'live', origin: 'rotated' });
    const blind = { ...TRAITS, position: false, resume: false };
    expect(rungs({ sessions: [moved], live: moved.ref, traits: blind })).toEqual(['transcript']);
    expect(rungs({ sessions: [moved], live: moved.ref })).toContain('live');
  });

  test('gives a session exactly what it lacks', () => {
    const [resume] = planContinuity(situation({ sessions: [session(0, { watermark: 2 })] })).steps;
    expect(resume?.deliver).toEqual({ what: 'records', after: 2, unsettled: false });
    const [told] = planContinuity(situation({ sessions: [session(0, { watermark: 3 })] })).steps;
    expect(told?.deliver).toEqual({ what: 'nothing' });
  });

  test('tells an unsettled session the turn that it saw and did not complete', () => {
    const [resume] = planContinuity(situation({ sessions: [session(0, { watermark: 2, state: 'unsettled' })] })).steps;
    expect(resume?.deliver).toEqual({ what: 'records', after: 2, unsettled: true });
  });

  test('replaces a session after more than two failed turns, and says why', () => {
    const unsettled = session(0, { watermark: 1, state: 'unsettled' });
    for (const repeats of [0, 1, 2]) {
      const plan = planContinuity(situation({ head: 9, sessions: [unsettled], repeats }));
      expect(plan.steps.map(({ rung }) => rung)).toEqual(['resume', 'transcript']);
      expect(plan.replaces).toBeUndefined();
    }
    const all = { ...TRAITS, rehydrate: true };
    const live = { head: 9, sessions: [unsettled], live: unsettled.ref, traits: all, repeats: 3 };
    const plan = planContinuity(situation(live));
    expect(plan.steps.map(({ rung }) => rung)).toEqual(['rehydrate', 'transcript']);
    expect(plan.replaces).toEqual({
      session: unsettled,
      reason: expect.stringContaining('told 3 turns that it has been told before'),
    });
  });

  test('continues in such a session when it is rewound before the last prompt, unless it has no watermark', () => {
    const told = { head: 9, repeats: 3, rewinds: true };
    const [step] = planContinuity(
      situation({ ...told, sessions: [session(0, { watermark: 6, state: 'unsettled' })] }),
    ).steps;
    expect(step).toMatchObject({ rung: 'resume', deliver: { what: 'records', after: 6, unsettled: true } });
    expect(rungs({ ...told, sessions: [session(0, { watermark: 0, state: 'unsettled' })] })).toEqual(['transcript']);
  });

  test('continues in such a session when the caller names it, or prefers a rung that continues', () => {
    const told = { head: 9, sessions: [session(0, { watermark: 1, state: 'unsettled' })], repeats: 8 };
    expect(rungs({ ...told, explicit: 'id-0' })).toEqual(['resume']);
    expect(rungs({ ...told, restore: { ...DEFAULT_RESTORE, rung: 'resume' } })).toEqual(['resume']);
    // Any other rung says how it is replaced.
    expect(rungs({ ...told, restore: { ...DEFAULT_RESTORE, rung: 'transcript' } })).toEqual(['transcript']);
  });

  const able = { ...TRAITS, rehydrate: true, noTools: true };
  const held = session(0, { watermark: 3, state: 'live' });
  const states: Record<string, Partial<Situation>> = {
    live: { sessions: [held], live: held.ref },
    dormant: { sessions: [session(0, { watermark: 3, state: 'dormant' })] },
    behind: { sessions: [session(0, { watermark: 1, state: 'dormant' })] },
    unsettled: { sessions: [session(0, { watermark: 2, state: 'unsettled' })] },
    lost: { sessions: [session(0, { watermark: 3, state: 'lost' })] },
  };
  test.each<[state: string, rung: Rung, planned: Rung[]]>([
    ['live', 'replay', ['live', 'resume', 'replay']],
    ['live', 'transcript', ['live', 'resume', 'transcript']],
    ['live', 'rehydrate', ['live', 'resume', 'rehydrate']],
    ['live', 'resume', ['live', 'resume']],
    ['live', 'live', ['live']],
    ['dormant', 'replay', ['resume', 'replay']],
    ['dormant', 'resume', ['resume']],
    ['dormant', 'live', []],
    ['behind', 'replay', ['resume', 'replay']],
    ['unsettled', 'replay', ['resume', 'replay']],
    ['lost', 'replay', ['replay']],
    ['lost', 'transcript', ['transcript']],
    ['lost', 'resume', []],
  ])('a session that is %s, and the preferred rung "%s": %j', (state, rung, planned) => {
    const restore = { ...DEFAULT_RESTORE, rung };
    expect(rungs({ ...states[state], traits: able, restore })).toEqual(planned);
  });

  test.each(Object.keys(states))(
    'a rebuild replaces a session that is %s, by the best rung or by the given one',
    (state) => {
      const rebuild = { ...DEFAULT_RESTORE, rebuild: true };
      expect(rungs({ ...states[state], traits: able, restore: rebuild })).toEqual(['rehydrate', 'transcript']);
      const plan = planContinuity(
        situation({ ...states[state], traits: able, restore: { ...rebuild, rung: 'replay' } }),
      );
      expect(plan.steps.map(({ rung }) => rung)).toEqual(['replay']);
      expect(plan.replaces, 'it is not closed before the new one works').toBeUndefined();
    },
  );

  test('never goes back to an older session, however healthy it is', () => {
    for (const state of SESSION_STATES.filter((one) => !isUsable(session(0, { state: one })))) {
      const lineage = [session(0, { state }), session(1, { watermark: 3 })];
      expect(rungs({ sessions: lineage, live: 'ref-1' })).toEqual(['transcript']);
    }
  });

  test('adopts a session from elsewhere and tells it the whole history', () => {
    const { steps } = planContinuity(situation({ explicit: 'elsewhere' }));
    expect(steps).toHaveLength(1);
    expect(steps[0]).toMatchObject({ open: { how: 'adopt', id: 'elsewhere' }, deliver: { what: 'records', after: 0 } });
  });

  test('gives the reason when there is no way', () => {
    const cannot = { ...TRAITS, resume: false };
    expect(planContinuity(situation({ explicit: 'elsewhere', traits: cannot })).refusal).toMatch(/cannot reopen/);
    const lost = [session(0, { state: 'diverged' })];
    expect(planContinuity(situation({ explicit: 'id-0', sessions: lost })).refusal).toMatch(/diverged/);
    const replay = { ...DEFAULT_RESTORE, rung: 'replay' as const };
    expect(planContinuity(situation({ restore: replay })).refusal).toMatch(/could run tools again/);
    const live = { ...DEFAULT_RESTORE, rung: 'live' as const };
    expect(planContinuity(situation({ restore: live })).refusal).toMatch(/"live" that was asked for/);
  });
});

describe('for every situation', () => {
  test('the plan has steps, or the reason why not', () => {
    property(anySituation, (told) => {
      const { steps, refusal } = planContinuity(told);
      expect(steps.length === 0).toBe(refusal !== null);
    });
  });

  test('the same situation gives the same plan, and is not changed by planning', () => {
    property(anySituation, (told) => {
      const before = structuredClone(told);
      expect(planContinuity(structuredClone(told))).toEqual(planContinuity(told));
      expect(told).toEqual(before);
    });
  });

  test('a step without proof is planned with the policy "auto" or "off" only', () => {
    property(unnamed, (told) => {
      if (told.restore.policy !== 'required') return;
      for (const step of planContinuity(told).steps) expect(step.proof).not.toBe('none');
    });
  });

  test('no step is planned with a proof that is refuted', () => {
    property(anySituation, (told) => {
      for (const step of planContinuity(told).steps) expect(step.proof).not.toBe('refuted');
    });
  });

  test('only the newest session is used, and only when it is usable', () => {
    property(unnamed, (told) => {
      for (const { open } of planContinuity(told).steps) {
        if (!('session' in open)) continue;
        expect(open.session).toEqual(told.sessions[0]);
        expect(isUsable(open.session)).toBe(true);
        if (open.how === 'live') expect(open.session.ref).toBe(told.live);
      }
    });
  });

  test('a replaced session is not used, and only an unsettled one is replaced', () => {
    property(anySituation, (told) => {
      const { steps, replaces } = planContinuity(told);
      if (replaces === undefined) return;
      expect(replaces.session).toMatchObject({ state: 'unsettled', ref: told.sessions[0]?.ref });
      expect(steps.every(({ open }) => !('session' in open))).toBe(true);
    });
  });

  test('a session that the caller named is used or refused, never replaced', () => {
    property(anySituation, (told) => {
      if (told.explicit === null) return;
      for (const { open } of planContinuity(told).steps) {
        const id = 'session' in open ? open.session.id : open.how === 'adopt' ? open.id : null;
        expect(id).toBe(told.explicit);
        if ('session' in open) expect(isUsable(open.session)).toBe(true);
      }
    });
  });

  test('the policy "off" always starts fresh, and calls it so', () => {
    property(unnamed, (told) => {
      const { steps } = planContinuity({ ...told, restore: { ...told.restore, policy: 'off' } });
      expect(steps).toHaveLength(1);
      expect(steps[0]).toMatchObject({ rung: told.head === 0 ? 'new' : 'fresh', open: { how: 'new' } });
    });
  });

  test('the policy "auto" ends in a fresh session, and nothing else is fresh', () => {
    property(unnamed, (told) => {
      const { policy, rung } = told.restore;
      const found = planContinuity(told).steps.map((step) => step.rung);
      if (policy === 'auto' && rung === null && told.head > 0) expect(found.at(-1)).toBe('fresh');
      const rest = policy === 'off' ? [] : policy === 'auto' ? found.slice(0, -1) : found;
      expect(rest).not.toContain('fresh');
    });
  });

  test('a replay is planned when asked for, where tools cannot run or may', () => {
    property(anySituation, (told) => {
      const replays = planContinuity(told).steps.filter((step) => step.deliver.what === 'prompts');
      if (replays.length === 0) return;
      expect(told.restore.rung).toBe('replay');
      expect(told.traits.noTools || told.restore.allowTools).toBe(true);
    });
  });

  test('a preferred rung is the only one that restores, and what continues in a session comes before it', () => {
    property(unnamed, (told) => {
      const { policy, rung } = told.restore;
      if (rung === null || policy === 'off') return;
      const others = planContinuity(told).steps.filter((step) => step.rung !== rung && step.rung !== 'new');
      for (const step of others) {
        expect(continues(step.rung)).toBe(true);
        expect(RUNGS.indexOf(step.rung as Rung)).toBeLessThan(RUNGS.indexOf(rung));
      }
    });
  });

  test('only a rebuild leaves out the steps that continue because of a rung below them', () => {
    property(unnamed, (told) => {
      if (told.restore.rung === null || continues(told.restore.rung) || told.restore.policy === 'off') return;
      const cached = (restore: EffectiveRestore) =>
        planContinuity({ ...told, restore }).steps.filter((step) => continues(step.rung));
      const { rebuild, ...kept } = told.restore;
      expect(cached(kept)).toEqual(cached({ ...kept, rung: null }));
      expect(cached({ ...kept, rebuild: true })).toEqual([]);
    });
  });

  test('a conversation without history always starts', () => {
    property(unnamed, (told) => {
      const empty = { ...told, head: 0, sessions: told.sessions.map((one) => ({ ...one, watermark: 0 })) };
      const { steps, refusal } = planContinuity(empty);
      expect(refusal).toBeNull();
      expect(steps.at(-1)).toMatchObject({ rung: 'new', open: { how: 'new' }, deliver: { what: 'nothing' } });
    });
  });

  test('every step brings its session to the head, or says that it does not', () => {
    property(anySituation, (told) => {
      for (const { rung, open, deliver } of planContinuity(told).steps) {
        const has = 'session' in open ? open.session.watermark : 0;
        if (deliver.what === 'records') expect(deliver.after).toBe(has);
        if (deliver.what !== 'nothing' || open.how === 'rehydrate' || rung === 'fresh') continue;
        expect(has).toBe(told.head);
      }
    });
  });
});

describe('a new session whose id the caller chose', () => {
  const takes = { ...TRAITS, id: 'assigned', rehydrate: true } as const;
  const plan = (told: Partial<Situation>) => {
    const { steps, refusal } = planContinuity(situation({ traits: takes, newSession: 'id-9', ...told }));
    return refusal ?? steps.map((step) => `${step.rung} ${step.open.how}`);
  };
  const recorded = (more: Parameters<typeof session>[1] = {}) => session(9, { position: null, turns: 0, ...more });

  test.each<[string, Partial<Situation>, string[] | string]>([
    ['begins a conversation', { head: 0 }, ['new new']],
    [
      'gets the history, whatever other session there is',
      { sessions: [session(0, { watermark: 3 })] },
      ['rehydrate rehydrate', 'transcript new'],
    ],
    ['has no history where none is wanted', { restore: { ...DEFAULT_RESTORE, policy: 'off' } }, ['fresh new']],
    [
      'may end up without it',
      { restore: { ...DEFAULT_RESTORE, policy: 'auto' } },
      ['rehydrate rehydrate', 'transcript new', 'fresh new'],
    ],
    [
      'is opened when an earlier attempt only recorded it',
      { sessions: [recorded()] },
      ['rehydrate rehydrate', 'transcript new'],
    ],
    [
      'is continued when an earlier attempt was sent to it',
      { sessions: [recorded({ state: 'unsettled' })] },
      ['resume resume'],
    ],
    [
      'is not opened again after a turn',
      { sessions: [recorded({ turns: 1, watermark: 3 })] },
      'its id was used before',
    ],
    ['is not opened again when it is gone', { sessions: [recorded({ state: 'lost' })] }, 'its id was used before'],
    ['needs an agent that takes ids', { traits: TRAITS }, 'this agent issues the ids of its sessions itself'],
    [
      'is opened also where the settings only continue in a session',
      { restore: { ...DEFAULT_RESTORE, rung: 'resume' } },
      ['rehydrate rehydrate', 'transcript new'],
    ],
    [
      'gets the history by the preferred rung',
      { restore: { ...DEFAULT_RESTORE, rung: 'transcript' } },
      ['transcript new'],
    ],
  ])('%s', (_, told, expected) => {
    expect(plan(told)).toEqual(expected);
  });
});

test('an adopted session is told everything but its own turns until a prompt has completed, and not after that', () => {
  const delivered = (untold: boolean, more: Parameters<typeof session>[1]) => {
    const adopted = session(0, { origin: 'adopted', watermark: 3, ...more });
    const known = { sessions: [adopted], untold: untold ? [adopted.ref] : [] };
    return planContinuity(situation(known)).steps[0]?.deliver;
  };
  expect(delivered(true, { dropped: 2 })).toMatchObject({ what: 'records', after: 0, except: { id: 'id-0' } });
  expect(delivered(true, { dropped: 0 })).toEqual({ what: 'nothing' });
  expect(delivered(false, { dropped: 2 })).toEqual({ what: 'nothing' });
  expect(delivered(false, { dropped: 2, watermark: 1 })).toMatchObject({ what: 'records', after: 1 });
});
