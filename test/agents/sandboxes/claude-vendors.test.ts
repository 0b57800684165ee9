// The real Claude in a rented machine, with a double of the vendor's package.
import { expect, test } from 'vitest';
import { startModel } from '../../../src/testing/index.ts';
import { CliHome } from '../../e2e/cli/process.ts';
import { DoubleHome, NODE_OPTIONS } from '../../vendors/double/home.ts';
import { whyNoDoubles } from '../../vendors/double/service.ts';
import { claudeEnvironment, claudeOrSkip, packageFolder } from '../support/claude.ts';

/** A data home whose processes load the double. */
class HomeWithDouble extends CliHome {
  override environment(): Record<string, string> {
    return { ...super.environment(), NODE_OPTIONS };
  }
}

test('when the e2b machine of Claude is lost, a new machine is made, and Claude has the earlier prompts', async (context) => {
  claudeOrSkip(context);
  const why = whyNoDoubles();
  if (why !== null) context.skip(why);
  await using end = new AsyncDisposableStack();
  const model = end.adopt(await startModel(), (one) => one.close());
  const doubles = end.use(new DoubleHome('e2b'));
  const home = end.adopt(new HomeWithDouble({}), (one) => one.remove());
  const { HOME: _, PATH: __, ...env } = claudeEnvironment(model, '');
  const claude = { adapter: 'claude-cli', package: packageFolder, env };
  home.configure({ agents: { claude }, sandbox: doubles.sandbox });
  await home.ok('send', 'chat', 'The codeword is amber.');
  const { conversation } = await home.show('chat');
  const first = doubles.machine(conversation.id);
  await doubles.service.remove(first);
  expect(await home.ok('send', 'chat', 'Which codewords have you seen?')).toContain('amber');
  expect(doubles.machine(conversation.id)).not.toBe(first);
  const { turns, receipts } = await home.show('chat');
  expect(turns.map(({ state }: { state: string }) => state)).toEqual(['completed', 'completed']);
  expect(receipts.at(-1)).toMatchObject({ turn: 2, rung: 'rehydrate' });
});
