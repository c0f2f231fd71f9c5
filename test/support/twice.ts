/** True where the tests are run with the work of every transaction running twice: `npm run test:twice`. */
export const twice = process.env['TEST_TWICE'] === '1'
