/*
 * The packages of the vendors are installed by whoever needs them, so they are not here when this is checked. test/vendors checks what
 * we use of them against the types that they publish.
 */
declare module '@vercel/sandbox';
declare module 'e2b';
