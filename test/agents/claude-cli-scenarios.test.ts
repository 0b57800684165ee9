import { claudeScenarios } from './claude-scenarios.ts';

claudeScenarios('claude-cli');
