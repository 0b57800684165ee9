/*
 * Users install the packages of the vendors when they need them, so the type check does not have them. test/vendors compares what we use
 * of them with their published types.
 */
declare module '@vercel/sandbox';
declare module 'e2b';
