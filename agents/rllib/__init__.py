"""Masked PPO on RLlib's new API stack: workers that play whole native batches, one learner or several."""
