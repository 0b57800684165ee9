/** `throughline/testing`: what tests of programs that use agents need, and Throughline's own. */
export type { Directive } from './directives.ts';
export { type Model, type ModelOptions, startModel } from './model.ts';
export { codewordsIn, conversationOf } from './person.ts';
export { acknowledgement } from './plan.ts';
export type {
  ApiName,
  ModelAnswer,
  ModelMessage,
  ModelRequest,
  ModelUsage,
  ToolResult,
  ToolUse,
} from './request.ts';
