import { RequestError } from '@agentclientprotocol/sdk';
import { expect, test } from 'vitest';
import { SessionChoices } from './choices.ts';

const EFFORTS: Record<string, string[]> = { small: ['low'], large: ['low', 'high'] };
const select = (id: string, currentValue: string, values: string[], category: string | null = null) => ({
  ...{ id, type: 'select', category, currentValue, options: values.map((value) => ({ value, name: value })) },
});

/** An agent with two modes, and two models of which each has its own efforts. */
function agent(owed = {}) {
  const now: Record<string, string | boolean> = { model: 'large', effort: 'high', fast: false, mode: 'ask' };
  const asked: string[] = [];
  const configOptions = () => [
    select('model', String(now.model), ['small', 'large'], 'model'),
    select('effort', String(now.effort), EFFORTS[String(now.model)] ?? []),
    { id: 'fast', type: 'boolean', currentValue: now.fast },
  ];
  const choices = new SessionChoices(async (method, { configId, value, modeId }) => {
    asked.push(method === 'session/set_mode' ? `mode=${modeId}` : `${configId}=${value}`);
    if (method === 'session/set_mode') {
      now.mode = String(modeId);
      return {};
    }
    const values = configId === 'model' ? ['small', 'large'] : (EFFORTS[String(now.model)] ?? []);
    if (typeof value === 'string' && !values.includes(value)) throw RequestError.invalidParams();
    now[String(configId)] = value as string;
    if (configId === 'model') now.effort = 'low';
    return { configOptions: configOptions() };
  }, owed);
  const modes = { currentModeId: now.mode, availableModes: [{ id: 'ask' }, { id: 'code' }] };
  choices.read({ modes, configOptions: configOptions() });
  return { choices, asked, now };
}

test('a choice is reset when it is no longer made, with the options that changed because of it', async () => {
  const { choices, asked, now } = agent();
  expect(await choices.choose({ model: 'small', mode: 'code', config: { fast: true } })).toBeNull();
  expect(now).toEqual({ model: 'small', effort: 'low', fast: true, mode: 'code' });
  expect(choices.owed).toEqual({ 'config:model': 'large', 'config:effort': 'high', 'config:fast': false, mode: 'ask' });
  expect(await choices.choose({ mode: 'code' })).toBeNull();
  expect(now).toEqual({ model: 'large', effort: 'high', fast: false, mode: 'code' });
  expect(await choices.choose({})).toBeNull();
  expect([now.mode, choices.owed]).toEqual(['ask', {}]);
  const count = asked.length;
  expect(await choices.choose({ model: 'large' })).toBeNull();
  expect(asked).toHaveLength(count); // no call, because it is already set
});

test('the next process resets the choices of a process that ended', async () => {
  const { choices, asked } = agent({ 'config:effort': 'low', mode: 'code' });
  await choices.giveBack();
  expect(asked).toEqual(['effort=low', 'mode=code']);
  expect(choices.owed).toEqual({});
});

test('values from the settings are not reset', async () => {
  const { choices, now } = agent({ 'config:model': 'large' });
  await choices.setDefaults({ model: 'small' });
  await choices.giveBack();
  expect([now.model, choices.owed]).toEqual(['small', {}]);
});

test.each([
  [{ model: 'huge' }, 'this agent has no model "huge"; it has: small, large (Invalid params)'],
  [{ config: { effort: 'max' } }, 'this agent has no value of "effort" "max"; it has: low, high (Invalid params)'],
  [{ config: { speed: 'x' } }, 'this agent has no config option "speed"; its config options: model, effort, fast'],
])('an unknown value is refused, and the error lists the known ones: %j', async (choice, why) => {
  expect(await agent().choices.choose(choice)).toBe(why);
});

test('available and current values are announced like updates of an agent', async () => {
  const { choices } = agent();
  await choices.setDefaults({ model: 'small', mode: 'code' });
  expect(choices.announcement).toMatchObject([
    { sessionUpdate: 'current_mode_update', currentModeId: 'code', availableModes: [{ id: 'ask' }, { id: 'code' }] },
    {
      sessionUpdate: 'config_option_update',
      configOptions: [
        { id: 'model', currentValue: 'small', options: [{ value: 'small' }, { value: 'large' }] },
        { id: 'effort', currentValue: 'low' },
        { id: 'fast', currentValue: false },
      ],
    },
  ]);
  expect(new SessionChoices(async () => ({}), {}).announcement).toEqual([]);
});

test('an option whose change got an empty answer is announced with the new value', async () => {
  const choices = new SessionChoices(async () => ({}), {});
  choices.read({ configOptions: [select('model', 'large', ['small', 'large'], 'model')] });
  await choices.setDefaults({ model: 'small' });
  expect(choices.announcement).toMatchObject([{ configOptions: [{ id: 'model', currentValue: 'small' }] }]);
});
