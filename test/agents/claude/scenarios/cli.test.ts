import { claudeScenarios } from './scenarios.ts';

claudeScenarios('claude-cli');
