import { claudeEnvironment, claudeOrSkip, packageFolder, userHome } from '../support/claude.ts';
import { testKillDuringTool } from '../support/killed.ts';

for (const adapter of ['claude-cli', 'claude-sdk']) {
  testKillDuringTool({
    name: adapter,
    settings(model, root) {
      const env = claudeEnvironment(model, userHome(root, { permissions: { allow: ['Bash'] } }));
      return { adapter, package: packageFolder, env };
    },
    run: (command) => `model: tool Bash ${JSON.stringify({ command })}`,
    skipIfMissing: claudeOrSkip,
  });
}
