import { claudeScenarios } from './scenarios.ts';

claudeScenarios('claude-sdk');
