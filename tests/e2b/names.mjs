// Preloaded into node, stands in for wildcard DNS: every name under E2B_DOMAIN is this machine.
import dns from 'node:dns'

const domain = (process.env.E2B_DOMAIN ?? '').replace(/:.*/, '')
const lookup = dns.lookup
dns.lookup = (name, options, callback) => lookup(domain && name.endsWith(`.${domain}`) ? '127.0.0.1' : name, options, callback)
