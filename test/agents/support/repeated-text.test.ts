import { expect, test } from 'vitest';
import { startModel } from '../../../src/testing/index.ts';
import { passagesRepeatedIn, promptsAndAnswers } from './repeated-text.ts';

const PROMPT = 'Please remember that the harbour master is called Ottilie.';

test('thirty characters from anywhere in a prompt are found in the instructions, and 29 are not', () => {
  const passage = PROMPT.slice(11, 41);
  expect(passagesRepeatedIn(`Be kind. ${passage}!`, [PROMPT])).toEqual([passage]);
  expect(passagesRepeatedIn(`Be kind. ${passage.slice(1)}!`, [PROMPT])).toEqual([]);
});

test('a text below thirty characters is found as a whole, unless it is very short', () => {
  const answer = 'Acknowledged 081e280e1607.';
  expect(passagesRepeatedIn(`Then it was said: ${answer}`, [answer])).toEqual([answer]);
  expect(passagesRepeatedIn('Go on.', ['Go on.'])).toEqual([]);
});

test('all prompts and answers of a request are compared, also its own answer', async () => {
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
  const texts = promptsAndAnswers(model.requests);
  expect([...texts]).toEqual([...messages.map(({ content }) => content), 'The last answer that nobody repeats.']);
  expect(passagesRepeatedIn(model.systemTexts().join('\n'), texts).length).toBeGreaterThan(0);
});
