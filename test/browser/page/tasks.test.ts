// Tasks on the page: the board, one task, adding a task, and retrying one with a message.
import { expect } from 'vitest';
import { axe, PHONE, pageServer } from './harness.ts';

const server = pageServer();

server.test('a task that is added runs, and the board shows its state', async ({ open }) => {
  const page = await open('/tasks');
  await page.getByText('No tasks yet.').waitFor();
  await page.getByRole('button', { name: 'Add a task' }).click();
  const form = page.getByRole('dialog', { name: 'Add a task' });
  await form.getByRole('textbox', { name: 'Goal', exact: true }).fill('/say It is done.');
  await form.getByLabel(/^Gate/).fill('true');
  await form.getByLabel('Name', { exact: true }).fill('first');
  await form.getByLabel('Agent').selectOption('scripted');
  await form.getByText("throughline task run '/say It is done.' --gate true --name first --agent scripted").waitFor();
  await form.getByRole('button', { name: 'Add', exact: true }).click();
  await page.getByRole('heading', { name: 'first' }).waitFor();
  await page.getByText('The gate passed: exit code 0.').waitFor();
  await page.getByRole('link', { name: '← All tasks' }).click();
  await page.getByRole('region', { name: 'Done' }).getByText('first').waitFor();
  await axe(page);
});

server.test('a refused task shows the reason, and the form keeps its input', async ({ open }) => {
  const page = await open('/tasks');
  await page.getByRole('button', { name: 'Add a task' }).click();
  const form = page.getByRole('dialog', { name: 'Add a task' });
  await form.getByRole('textbox', { name: 'Goal', exact: true }).fill('Something.');
  await form.getByLabel('Budget').fill('lots');
  await form.getByRole('button', { name: 'Add', exact: true }).click();
  await form.getByRole('alert').waitFor();
  expect(await form.getByRole('textbox', { name: 'Goal', exact: true }).inputValue()).toBe('Something.');
});

server.test('a form that is opened again is empty, and one that is submitted twice adds one task', async ({ open }) => {
  const page = await open('/tasks');
  await page.getByRole('button', { name: 'Add a task' }).click();
  const form = page.getByRole('dialog', { name: 'Add a task' });
  const goal = form.getByRole('textbox', { name: 'Goal', exact: true });
  await goal.fill('Something else.');
  await form.getByText("throughline task run 'Something else.'").waitFor();
  await form.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Add a task' }).click();
  await form.getByText('throughline task run "GOAL"').waitFor();
  await goal.fill('/say Twice.');
  await form.locator('form').evaluate((element: HTMLFormElement) => {
    element.requestSubmit();
    element.requestSubmit();
  });
  await page.getByRole('heading', { name: '/say Twice.' }).waitFor();
  const added = await (await server.tl()).tasks.list({});
  expect(added.filter((task) => task.goal === '/say Twice.')).toHaveLength(1);
});

server.test('with read-only access there are no buttons to add, cancel or retry a task', async ({ context }) => {
  const { tasks } = await server.tl();
  const [failed] = await tasks.run({ goal: '/say No.', gate: 'false', agent: 'scripted', maxIterations: 1 });
  const { link } = await server.caller.ok('POST', '/links', { scopes: ['read'] });
  await context.clearCookies();
  const page = await context.newPage();
  await page.goto(link);
  await page.goto(`${server.url}/tasks/${failed?.id}`);
  await page.getByRole('heading', { name: 'Iteration 1' }).waitFor();
  expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0);
  const { tasks: added } = await tasks.add({ goal: '/hang', name: 'unfinished', agent: 'scripted' });
  await page.goto(`${server.url}/tasks/${added[0]?.id}`);
  await page.getByRole('heading', { name: 'unfinished' }).waitFor();
  await page.getByRole('main').getByText('working', { exact: true }).waitFor();
  expect(await page.getByRole('button', { name: 'Cancel the task' }).count()).toBe(0);
  await tasks.cancel(added[0]?.id ?? '');
  await page.goto(`${server.url}/tasks`);
  await page.getByRole('region', { name: 'Failed or cancelled' }).waitFor();
  expect(await page.getByRole('button', { name: 'Add a task' }).count()).toBe(0);
});

server.test('a failed task is retried with a message of the user', async ({ open }) => {
  const { tasks, engine } = await server.tl();
  const [failed] = await tasks.run({
    goal: '/say No.',
    gate: 'echo 3 tests failed; false',
    agent: 'scripted',
    maxIterations: 1,
  });
  const page = await open(`/tasks/${failed?.id}`);
  await page.getByText(/gate: fail, exit code 1 .* · 3 tests failed/).waitFor();
  await page.getByLabel('Message to the agent').fill('/say Please go on.');
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('heading', { name: 'Round 2 · Iteration 1' }).waitFor();
  const { task, turns } = await tasks.report(failed?.id ?? '');
  expect(task.progress.round).toBe(2);
  const { prompt } = await engine.turn(turns.at(-1)?.turnId ?? '');
  expect(prompt).toEqual([{ type: 'text', text: expect.stringContaining('/say Please go on.') }]);
  await page.getByRole('button', { name: 'Try again' }).waitFor(); // it has failed again, so nothing changes while axe runs
  await axe(page);
});

server.test('a running task is cancelled, and another tab shows it', async ({ open }) => {
  const { tasks } = await server.tl();
  const { tasks: added } = await tasks.add({ goal: '/hang', name: 'endless', agent: 'scripted', milestone: '2.4' });
  const [page, other] = [await open(`/tasks/${added[0]?.id}`), await open('/tasks')];
  await other.getByRole('region', { name: 'Running' }).getByText('endless').waitFor();
  const cards = other.getByRole('main').getByRole('listitem');
  expect(await cards.count()).toBeGreaterThan(1);
  await other.getByLabel('Milestone').selectOption('2.4');
  await expect.poll(() => cards.count()).toBe(1);
  await page.getByRole('button', { name: 'Cancel the task' }).click();
  await other.getByRole('region', { name: 'Failed or cancelled' }).getByText('endless').waitFor();
});

server.test(
  'on a phone the board fits the screen, and has only columns with tasks',
  async ({ open }) => {
    const { tasks } = await server.tl();
    for (const gate of ['true', 'echo 3 tests failed; false'])
      await tasks.run({ goal: '/say Yes.', gate, agent: 'scripted', maxIterations: 1 });
    const page = await open('/tasks');
    await page.getByRole('region', { name: 'Done' }).waitFor();
    // The card of a failed task has the last line that its gate printed.
    await page.getByRole('region', { name: 'Failed or cancelled' }).getByText('3 tests failed').first().waitFor();
    expect(await page.getByRole('region', { name: 'Needs you' }).count()).toBe(0);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(width).toBeLessThanOrEqual(390);
    await axe(page);
  },
  PHONE,
);
