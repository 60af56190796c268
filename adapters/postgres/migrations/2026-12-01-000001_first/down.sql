-- Forward only: going back would forget which tokens were given.
DO $$ BEGIN RAISE EXCEPTION 'dlock has no way back to an older schema'; END $$;
