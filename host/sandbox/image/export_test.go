package image

import "crypto/sha256"

// Resum gives b the beginning and the checksum of an image file.
func Resum(b []byte) []byte {
	body := append([]byte(magic), b...)
	sum := sha256.Sum256(body)
	return append(body, sum[:]...)
}
