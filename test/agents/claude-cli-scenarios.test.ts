import { claudeEnvironment, claudeOrSkip, packageFolder, userHome } from './claude.ts';
import { claudeScenarios } from './claude-scenarios.ts';
import { killedInTheMiddle } from './killed.ts';

claudeScenarios('claude-cli');
killedInTheMiddle({
  name: 'claude-cli',
  settings(model, root) {
    const env = claudeEnvironment(model, userHome(root, { permissions: { allow: ['Bash'] } }));
    return { adapter: 'claude-cli', package: packageFolder, env };
  },
  run: (command) => `model: tool Bash ${JSON.stringify({ command })}`,
  needs: claudeOrSkip,
});
