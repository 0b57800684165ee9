import { expect, test } from 'vitest';
import { startModel } from '../../../src/testing/index.ts';
import { runsIn, saidIn } from './said.ts';

const PROMPT = 'Please remember that the harbour master is called Ottilie.';

test('thirty characters of a prompt are found in the instructions, at any place; fewer are not', () => {
  const run = PROMPT.slice(11, 41);
  expect(runsIn(`Be kind. ${run}!`, [PROMPT])).toEqual([run]);
  expect(runsIn(`Be kind. ${run.slice(1)}!`, [PROMPT])).toEqual([]);
});

test('a shorter text is found as a whole, unless it is a common phrase', () => {
  const answer = 'Acknowledged 081e280e1607.';
  expect(runsIn(`Then it was said: ${answer}`, [answer])).toEqual([answer]);
  expect(runsIn('Go on.', ['Go on.'])).toEqual([]);
});

test('every prompt and every answer counts as said, also the last one', async () => {
  const model = await startModel();
  const messages = [
    { role: 'user', content: PROMPT },
    { role: 'assistant', content: 'Ottilie it is, I shall remember.' },
    { role: 'user', content: 'model: say The last answer that nobody repeats.' },
  ];
  const body = JSON.stringify({ model: 'm', max_tokens: 9, system: `History: ${PROMPT}`, messages });
  const headers = { 'content-type': 'application/json', 'x-api-key': 'sk-fake' };
  await (await fetch(`${model.url}/v1/messages`, { method: 'POST', headers, body })).text();
  await model.close();
  const said = saidIn(model.requests);
  expect([...said]).toEqual([...messages.map(({ content }) => content), 'The last answer that nobody repeats.']);
  expect(runsIn(model.systemTexts().join('\n'), said).length).toBeGreaterThan(0);
});
