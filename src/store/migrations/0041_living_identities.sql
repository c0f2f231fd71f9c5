-- The identities of an account that are not deleted, how many they are and what their trash takes, without those that were deleted.
CREATE INDEX identities_living ON identities (account_id, trash_bytes, status) WHERE status <> 'deleted';
