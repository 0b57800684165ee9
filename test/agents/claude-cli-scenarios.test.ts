import { killedInTheMiddle } from './claude-killed.ts';
import { claudeScenarios } from './claude-scenarios.ts';

claudeScenarios('claude-cli');
killedInTheMiddle('claude-cli');
