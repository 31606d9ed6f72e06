// Package sourcetest is what the tests of the sources share.
package sourcetest
