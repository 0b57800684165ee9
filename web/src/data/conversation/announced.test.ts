import { expect, test } from 'vitest';
import type { Update } from '../../../../src/core/turn/update.ts';
import { afterUpdate, announcedBy, modelOption, modesOf, NOTHING_ANNOUNCED, otherOptions } from './announced.ts';

const after = (...updates: object[]) => (updates as Update[]).reduce(afterUpdate, NOTHING_ANNOUNCED);

test('a plan replaces the one before', () => {
  const plan = (content: string) => ({ sessionUpdate: 'plan', entries: [{ content, status: 'in_progress' }] });
  expect(after(plan('first'), plan('then')).plan).toEqual([{ content: 'then', status: 'in_progress' }]);
});

test('commands have a name, a description and a hint', () => {
  const availableCommands = [{ name: 'review', description: 'Reviews', input: { hint: 'what' } }, { name: 'compact' }];
  expect(after({ sessionUpdate: 'available_commands_update', availableCommands }).commands).toEqual([
    { name: 'review', description: 'Reviews', hint: 'what' },
    { name: 'compact', description: '', hint: null },
  ]);
});

test('the model, the mode and the other options are distinguished, also if values are grouped', () => {
  const configOptions = [
    {
      ...{ id: 'llm', name: 'Model', category: 'model', type: 'select', currentValue: 'a' },
      options: [{ name: 'Group', options: [{ value: 'a', name: 'A' }] }],
    },
    { id: 'mode', name: 'Mode', type: 'select', currentValue: 'plan', options: [{ value: 'plan' }] },
    { id: 'fast', name: 'Fast', type: 'boolean', currentValue: true },
  ];
  const announced = after({ sessionUpdate: 'config_option_update', configOptions });
  expect(modelOption(announced)).toMatchObject({ id: 'llm', current: 'a', values: [{ id: 'a', name: 'A' }] });
  expect(modesOf(announced)).toEqual({ values: [{ id: 'plan', name: 'plan' }], current: 'plan' });
  expect(otherOptions(announced)).toMatchObject([{ id: 'fast', current: true, values: null }]);
});

test('a mode that changes keeps the list of modes', () => {
  const availableModes = [{ id: 'ask', name: 'Ask' }];
  const announced = after(
    { sessionUpdate: 'current_mode_update', currentModeId: 'ask', availableModes },
    { sessionUpdate: 'current_mode_update', currentModeId: 'code' },
  );
  expect(modesOf(announced)).toEqual({ values: [{ id: 'ask', name: 'Ask' }], current: 'code' });
});

test.each([
  { sessionUpdate: 'plan', entries: 'none' },
  { sessionUpdate: 'available_commands_update', availableCommands: [null, { name: 3 }] },
  { sessionUpdate: 'config_option_update', configOptions: [{ id: '' }, 4] },
])('unexpected values are ignored: %j', (update) => {
  expect(after(update)).toMatchObject({ commands: [], options: [] });
});

test('every other update changes nothing', () => {
  const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'hi' } };
  expect(after(update)).toBe(NOTHING_ANNOUNCED);
});

test('what an agent announced elsewhere is offered without its current values', () => {
  const model = { id: 'model', name: 'Model', category: 'model', currentValue: 'b' };
  const options = ['a', 'b'].map((value) => ({ value, name: value }));
  const announced = announcedBy([
    { sessionUpdate: 'config_option_update', configOptions: [{ ...model, options }] },
    { sessionUpdate: 'current_mode_update', currentModeId: 'plan', availableModes: [{ id: 'plan', name: 'Plan' }] },
  ] as Update[]);
  expect(modelOption(announced)).toMatchObject({ current: null, values: [{ id: 'a' }, { id: 'b' }] });
  expect(modesOf(announced)).toEqual({ values: [{ id: 'plan', name: 'Plan' }], current: null });
  expect(announcedBy([])).toEqual(NOTHING_ANNOUNCED);
});
